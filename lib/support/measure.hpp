// SPDX-License-Identifier: BSD-3-Clause
// Orders methods that are timed in turns, and summarises their times.
//
// Best peer: OSU's benchmarks time one method after the other, so a clock that changes in between
// counts for one method only. Here each turn has every method once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace halocline {

/// Returns the order of `methods` methods in turn number `turn`, from 0, as their numbers from 0.
///
/// Every second turn goes the other way round, so a drift of the machine hits all methods alike.
/// Each pair of turns begins with another method: A B C, C B A, B C A, A C B, ... Where a turn goes
/// back, one method runs twice in a row, each time another one.
std::vector<std::size_t> order_of_turn(std::size_t methods, std::int64_t turn);

/// Returns a percentile, linear between the closest values; `fraction` 0.5 is the median. O(n log
/// n). Precondition: `values` is not empty.
double percentile(std::vector<double> values, double fraction);

/// Returns the median. O(n log n). Precondition: `values` is not empty.
double median(std::vector<double> values);

/// Summarises a sample of times. Percentiles are linear between the closest values.
struct Statistics {
  double median = 0, p10 = 0, p90 = 0, min = 0, max = 0;
};

/// Returns the statistics of `samples`. O(n log n). Precondition: `samples` is not empty.
Statistics statistics(std::span<const double> samples);

}  // namespace halocline
