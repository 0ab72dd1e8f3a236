// SPDX-License-Identifier: BSD-3-Clause
// Timing on a noisy machine within a limited time: batches of short operations, turns, medians.
//
// Best peer: [PEA21 section 6.3] measures one point after the other, so that a disturbance hits all
// samples of a few points; here points take turns, and each of them loses one sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace halocline::comm::detail {

/// Seconds since some moment.
using Clock = std::function<double()>;

/// The clock of this process.
double steady_seconds();

/// Makes so many calls, after one that does not count, and returns the seconds of one of them.
using Trial = std::function<double(std::int64_t calls)>;

/// A trial lasts about that long, or one call.
inline constexpr double kTrialSeconds = 2e-4;
/// Trials of a point.
inline constexpr int kLeastTrials = 3, kMostTrials = 21;

/// Precondition: `values` is not empty. O(n).
double median(std::vector<double> values);

/// How many calls make a trial of kTrialSeconds: from 1 to 10^6.
std::int64_t calls_per_trial(double seconds_per_call);

/// At least how long take_turns() takes for operations of these lengths.
double least_seconds(std::span<const double> seconds_per_call);

/// The median seconds of a call of each. All take turns, in reverse order every other time: for
/// about `seconds`, but kLeastTrials times at least and kMostTrials times at most.
std::vector<double> take_turns(std::span<const Trial> trials, double seconds, const Clock& now);

/// What is measured in layers of points, each layer for `growth` times as many bytes as the one
/// before.
struct Layers {
  std::size_t count = 0;
  double growth = 1;
  /// The points of a layer, which take turns; asked for when their turn comes.
  std::function<std::vector<Trial>(std::size_t layer)> trials;
};

/// The medians of layer after layer, for about `seconds`. The first two are always measured; then
/// all ends before the first layer for which the time that is left is too short, judged by the one
/// before it. Calls `done` with the number of points behind each layer.
std::vector<std::vector<double>> measure(const Layers& layers, double seconds, const Clock& now,
                                         const std::function<void(std::size_t points)>& done);

}  // namespace halocline::comm::detail
