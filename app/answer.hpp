// SPDX-License-Identifier: BSD-3-Clause
// Answers the question of `halocline compare`: which method is the fastest, by how much, and how
// sure that is.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace halocline::app {

/// Holds a median and the interval that contains it with a probability of 95 %.
struct Estimate {
  double median = 0;
  std::optional<double> low, high;  ///< unset: too few samples for an interval

  /// Tells if the median may be `value`: the interval contains it. Without an interval every value
  /// is possible.
  bool may_be(double value) const { return !low || (*low <= value && value <= *high); }
};

/// Estimates the median of independent samples from their order alone, by the binomial
/// distribution. Needs 6 samples for an interval. Precondition: `samples` is not empty. O(n log n).
Estimate estimate_median(std::vector<double> samples);

/// Describes one timed method of a comparison.
struct Candidate {
  std::string label;   ///< name in tables
  std::string anchor;  ///< heading in app/methods.md
  bool is_vendor = false;
  bool needs_window = false;    ///< works only for arrays that are allocated in a shared window
  std::vector<double> seconds;  ///< one time for each timed exchange; the methods took turns
  bool is_alias = false;        ///< `auto`, if the method that it chose is timed as well
};

/// Returns the speed of `method` relative to `baseline`: 2 means twice as fast. The median is the
/// ratio of the median times. The interval is that of the ratios of single turns. Exchange i of
/// both was timed in the same turn, so a moment that slows the machine slows both.
Estimate speed(const Candidate& method, const Candidate& baseline);

/// Returns the last lines of a comparison: the fastest method of ours and its speed relative to
/// `baseline`, the MPI's fastest method. A method without a window is preferred to one that needs a
/// window and is not clearly faster. `baseline` is nullptr if no vendor method was timed. The text
/// is empty if no method of ours was timed.
std::string answer(std::span<const Candidate> methods, const Candidate* baseline,
                   const std::string& mpi);

/// Returns an SVG picture of the speeds as bars with their intervals.
std::string bars(std::span<const Candidate> methods, const Candidate& baseline,
                 const std::string& title);

}  // namespace halocline::app
