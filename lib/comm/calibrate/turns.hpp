// SPDX-License-Identifier: BSD-3-Clause
// Measures times on a noisy machine within a limited time. Batches of short operations take turns,
// samples must agree, and points must not contradict each other.
//
// Best peer: [PEA21 section 6.3] measures one point after the other, so that a disturbance hits all
// samples of a few points. Here points take turns, so that a disturbance hits one sample of each.
// Impossible results are measured again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace halocline::comm::detail {

/// Returns seconds since some moment.
using Clock = std::function<double()>;

/// Returns the seconds of the steady clock of this process.
double steady_seconds();

/// Makes `calls` calls after a warm-up call. Returns the seconds of one call.
using Trial = std::function<double(std::int64_t calls)>;

/// Sets the length of a trial in seconds. A trial has at least one call, and is shorter after
/// disturbed trials.
inline constexpr double kTrialSeconds = 2e-4;
/// Bounds the number of trials of a point.
inline constexpr int kLeastTrials = 3, kMostTrials = 21;

/// Sums up the samples of a point. A disturbed sample is too long, never too short. Therefore
/// `seconds` is the first quartile, or the shortest of less than four samples. The samples are
/// `settled` if a quarter of them, and at least two, lie within kSpread of the shortest.
struct Timed {
  double seconds = 0;
  bool settled = true;
};
inline constexpr double kSpread = 1.2;
/// Evaluates the samples of a point. Precondition: at least two samples. O(n log n).
Timed evaluate(std::vector<double> samples);

/// Returns the number of calls in a trial of kTrialSeconds, from 1 to 10^6.
std::int64_t calls_per_trial(double seconds_per_call);

/// Returns the least seconds of take_turns() for operations of these lengths.
double least_seconds(std::span<const double> seconds_per_call);

/// Times a call of each trial. All trials take turns for about `seconds`, in the order of
/// order_of_turn(). Each is made kLeastTrials to kMostTrials times. Points that are not settled
/// then take up to kExtraTrials more, for about kExtraSeconds.
std::vector<Timed> take_turns(std::span<const Trial> trials, double seconds, const Clock& now);
inline constexpr int kExtraTrials = 6;
inline constexpr double kExtraSeconds = 0.1;

/// Names a point that does less work than another point. The other point does `work` times its
/// work.
struct Lesser {
  std::size_t layer, point;
  double work;
};

/// Describes layers of points. Each layer works on `growth` times the bytes of the layer before.
struct Layers {
  std::size_t count = 0;
  double growth = 1;
  /// Returns the trials of a layer, one for each point; called when the layer's turn comes.
  std::function<std::vector<Trial>(std::size_t layer)> trials;
  /// Returns points, of the same layer or the layer before, that do less work than this point.
  /// Unset: no such points are known.
  std::function<std::vector<Lesser>(std::size_t layer, std::size_t point)> lesser = nullptr;
};

/// Holds the result of measure(): the times of all layers, and the points that stayed noisy.
struct Measured {
  struct Place {
    std::size_t layer, point;
  };
  std::vector<std::vector<double>> seconds;
  std::vector<Place> noisy;
};

/// Measures layer after layer, for about `seconds`. The first two layers are always measured. Stops
/// before the first layer for which the time left is too short, judged by the layer before. Calls
/// `done` with the number of points of each layer.
///
/// Two points contradict each other in two cases. The point with less work takes kContradiction
/// times the time of the other point. Or the point with more work takes kJump times the time that
/// its work explains. The slower point is then measured again, up to kRemeasurements times; its
/// shortest time counts.
Measured measure(const Layers& layers, double seconds, const Clock& now,
                 const std::function<void(std::size_t points)>& done);
inline constexpr double kContradiction = 1.5, kJump = 4;
inline constexpr int kRemeasurements = 4;

}  // namespace halocline::comm::detail
