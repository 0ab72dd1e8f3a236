// SPDX-License-Identifier: BSD-3-Clause
// Timing on a noisy machine within a limited time: batches of short operations, turns, samples that
// must agree with each other, and points that must not contradict others.
//
// Best peer: [PEA21 section 6.3] measures one point after the other, so that a disturbance hits all
// samples of a few points; here points take turns, each of them loses one sample, and what still
// cannot be is measured again.
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

/// A trial lasts about that long, or one call; less after disturbed ones.
inline constexpr double kTrialSeconds = 2e-4;
/// Trials of a point.
inline constexpr int kLeastTrials = 3, kMostTrials = 21;

/// Sums up the samples of a point. A disturbed sample is too long and never too short, so that
/// `seconds` is the first quartile: of less than four samples the shortest. They are `settled` if a
/// quarter of them, and at least two, lie within kSpread of the shortest.
struct Timed {
  double seconds = 0;
  bool settled = true;
};
inline constexpr double kSpread = 1.2;
/// Precondition: there are at least two samples. O(n log n).
Timed evaluate(std::vector<double> samples);

/// How many calls make a trial of kTrialSeconds: from 1 to 10^6.
std::int64_t calls_per_trial(double seconds_per_call);

/// At least how long take_turns() takes for operations of these lengths.
double least_seconds(std::span<const double> seconds_per_call);

/// Times a call of each. All take turns, in reverse order every other time: for about `seconds`,
/// but kLeastTrials times at least and kMostTrials times at most. Those that are not settled then
/// take up to kExtraTrials more, for about kExtraSeconds.
std::vector<Timed> take_turns(std::span<const Trial> trials, double seconds, const Clock& now);
inline constexpr int kExtraTrials = 6;
inline constexpr double kExtraSeconds = 0.1;

/// A point that does less than another: the other one does `work` times as much.
struct Lesser {
  std::size_t layer, point;
  double work;
};

/// What is measured in layers of points, each layer for `growth` times as many bytes as the one
/// before.
struct Layers {
  std::size_t count = 0;
  double growth = 1;
  /// The points of a layer, which take turns; asked for when their turn comes.
  std::function<std::vector<Trial>(std::size_t layer)> trials;
  /// Points of the same layer or the one before that do less than this one. Unset: none is known.
  std::function<std::vector<Lesser>(std::size_t layer, std::size_t point)> lesser = nullptr;
};

/// Holds the result of measure(): the times of layer after layer, and the points that stayed noisy.
struct Measured {
  struct Place {
    std::size_t layer, point;
  };
  std::vector<std::vector<double>> seconds;
  std::vector<Place> noisy;
};

/// Measures layer after layer, for about `seconds`. The first two are always measured; then all
/// ends before the first layer for which the time that is left is too short, judged by the one
/// before it. Calls `done` with the number of points behind each layer.
///
/// Two points contradict each other if the one that does less takes kContradiction times as long as
/// the other one, or if that one takes kJump times as long as its work explains. The slower one of
/// them is measured again then, up to kRemeasurements times; its shortest time counts.
Measured measure(const Layers& layers, double seconds, const Clock& now,
                 const std::function<void(std::size_t points)>& done);
inline constexpr double kContradiction = 1.5, kJump = 4;
inline constexpr int kRemeasurements = 4;

}  // namespace halocline::comm::detail
