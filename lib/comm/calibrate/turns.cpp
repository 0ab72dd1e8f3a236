// SPDX-License-Identifier: BSD-3-Clause
#include "comm/calibrate/turns.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "dtype/support/contract.hpp"

namespace halocline::comm::detail {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  HALOCLINE_EXPECT(!values.empty());
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

std::int64_t calls_per_trial(double seconds_per_call) {
  constexpr double kMost = 1e6;
  const auto calls = kTrialSeconds / std::max(seconds_per_call, kTrialSeconds / kMost);
  return std::max<std::int64_t>(static_cast<std::int64_t>(calls), 1);
}

double least_seconds(std::span<const double> seconds_per_call) {
  // The trial that tells how long a call takes, and those that count, each with its warm-up.
  double out = 0;
  for (const auto seconds : seconds_per_call)
    out += 2 * seconds + kLeastTrials * (seconds + std::max(seconds, kTrialSeconds));
  return out;
}

std::vector<double> take_turns(std::span<const Trial> trials, double seconds, const Clock& now) {
  const auto begin = now();
  struct Point {
    std::int64_t calls;
    std::vector<double> samples;
  };
  std::vector<Point> points;
  for (const auto& trial : trials) points.push_back({calls_per_trial(trial(1)), {}});
  const auto sample = [&](std::size_t i) {
    points[i].samples.push_back(trials[i](points[i].calls));
  };
  for (int turn = 0; turn < kMostTrials; ++turn) {
    const auto start = now();
    for (std::size_t i = 0; i < trials.size(); ++i)
      sample(turn % 2 == 0 ? i : trials.size() - 1 - i);
    const auto end = now();
    const bool time_for_another = end - begin + (end - start) <= seconds;
    if (turn + 1 >= kLeastTrials && !time_for_another) break;
  }
  std::vector<double> medians;
  for (auto& point : points) medians.push_back(median(std::move(point.samples)));
  return medians;
}

std::vector<std::vector<double>> measure(const Layers& layers, double seconds, const Clock& now,
                                         const std::function<void(std::size_t points)>& done) {
  const auto begin = now();
  std::vector<std::vector<double>> out;
  for (std::size_t i = 0; i < layers.count; ++i) {
    const auto left = seconds - (now() - begin);
    if (i >= 2) {
      auto expected = out.back();
      for (auto& time : expected) time *= layers.growth;
      if (least_seconds(expected) > left) break;
    }
    const auto trials = layers.trials(i);
    out.push_back(take_turns(trials, left / static_cast<double>(layers.count - i), now));
    done(trials.size());
  }
  return out;
}

}  // namespace halocline::comm::detail
