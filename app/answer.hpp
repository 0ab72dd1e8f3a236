// SPDX-License-Identifier: BSD-3-Clause
// The answer of `halocline compare`: which method is the fastest, by how much, and how sure that
// is.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace halocline::app {

/// A median with the interval that holds it with 95 % probability.
struct Estimate {
  double median = 0;
  std::optional<double> low, high;  ///< unset: too few samples for an interval

  /// Tells if the interval leaves it open whether the median is above or below `value`. Without an
  /// interval nothing is sure.
  bool may_be(double value) const { return !low || (*low <= value && value <= *high); }
};

/// Estimates the median of independent samples from their order alone, by the binomial
/// distribution. Needs 6 samples for an interval. Precondition: `samples` is not empty. O(n log n).
Estimate estimate_median(std::vector<double> samples);

/// One timed method of a comparison.
struct Candidate {
  std::string label;   ///< in tables
  std::string anchor;  ///< heading in app/methods.md
  bool is_vendor = false;
  bool needs_window = false;    ///< works only for arrays that are allocated in a shared window
  std::vector<double> seconds;  ///< one for each timed exchange; methods took turns
  bool is_alias = false;        ///< `auto`, if the method that it chose is timed as well
};

/// Returns how many times as fast as `baseline` a method is. That is the ratio of the median times,
/// with the interval of the ratios of single turns. Exchange i of both was timed in the same turn,
/// so a moment that slows the machine slows both.
Estimate speed(const Candidate& method, const Candidate& baseline);

/// Returns the last lines of a comparison: the fastest method of ours and its speed relative to
/// `baseline`, the MPI's fastest one. A method that needs no window goes before one that needs one
/// and is not clearly faster. `baseline` is nullptr if no vendor method was timed. Empty if none of
/// ours was.
std::string answer(std::span<const Candidate> methods, const Candidate* baseline,
                   const std::string& mpi);

/// Returns an SVG picture of the speeds as bars with their intervals.
std::string bars(std::span<const Candidate> methods, const Candidate& baseline,
                 const std::string& title);

}  // namespace halocline::app
