// SPDX-License-Identifier: BSD-3-Clause
#include "turns.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

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

void append_times(Row& row, const Contender& contender) {
  row.fields.emplace_back(contender.name() + "_ns", median(contender.ns()));
  row.fields.emplace_back(contender.name() + "_p10_ns", percentile(contender.ns(), 0.1));
  row.fields.emplace_back(contender.name() + "_p90_ns", percentile(contender.ns(), 0.9));
}

}  // namespace halocline::dtype::bench
