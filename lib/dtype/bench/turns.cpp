// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/bench/turns.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace halocline::dtype::bench {

namespace {

using Clock = std::chrono::steady_clock;

double nanoseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

}  // namespace

void Contender::calibrate(double sample_ns) {
  while (sample(calls_) * static_cast<double>(calls_) < sample_ns) calls_ *= 2;
}

// The call before the timed ones brings caches and predictors into the state that this method
// leaves behind, whatever ran before.
double Contender::sample(std::int64_t calls) const {
  run_(1);
  const auto start = Clock::now();
  run_(calls);
  return nanoseconds_since(start) / static_cast<double>(calls);
}

void take_turns(std::vector<Contender>& contenders, const Effort& effort) {
  for (auto& contender : contenders)
    if (contender.ns().empty()) contender.calibrate(effort.sample_ns);
  const auto start = Clock::now();
  std::size_t rounds = 0;
  const auto sample = [&](Contender& contender) {
    if (contender.ns().size() < 2 || contender.ns().front() <= effort.slow_ns)
      contender.sample_once();
  };
  do {
    for (const auto turn : {2 * rounds, 2 * rounds + 1})
      for (const auto i : order_of_turn(contenders.size(), static_cast<std::int64_t>(turn)))
        sample(contenders[i]);
  } while (++rounds < effort.rounds || nanoseconds_since(start) < effort.seconds * 1e9);
}

double ratio(const Contender& a, const Contender& b) {
  std::vector<double> ratios;
  const auto samples = std::min(a.ns().size(), b.ns().size());
  for (std::size_t i = 0; i + 1 < samples; i += 2)
    ratios.push_back((b.ns()[i] + b.ns()[i + 1]) / (a.ns()[i] + a.ns()[i + 1]));
  return median(std::move(ratios));
}

void Row::add_times(const std::string& name, const std::vector<double>& ns, double scale) {
  const auto of = statistics(ns);
  add(name + "_ns", scale * of.median);
  add(name + "_p10_ns", scale * of.p10);
  add(name + "_p90_ns", scale * of.p90);
}

double Row::value(const std::string& field) const {
  for (const auto& [name, value] : fields)
    if (name == field) return value;
  return std::nan("");
}

}  // namespace halocline::dtype::bench
