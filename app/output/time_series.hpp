// SPDX-License-Identifier: BSD-3-Clause
// Writes a table of numbers over time, as CSV that grows while a run goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace halocline::app {

/// Is the file of a time series: a header, and one row for each step. Used on one rank.
class TimeSeries {
 public:
  /// Opens the file at `path`, or makes it. Drops rows of `first_step` and later, which a run that
  /// goes on from a checkpoint writes again.
  /// \param columns names of the numbers behind step, t and dt
  /// \param conserved columns whose drift stands at the end of each row: the relative change since
  /// the first row
  /// \throws ConfigError if the file has other columns
  /// \throws EnvironmentError if it cannot be written
  TimeSeries(std::string path, const std::vector<std::string>& columns,
             const std::vector<std::string_view>& conserved, std::int64_t first_step);

  /// Appends a row. `numbers` has one for each of the columns. The row is in the file on return.
  /// \throws EnvironmentError if it cannot be written
  void append(std::int64_t step, double time, double dt, const std::vector<double>& numbers);

 private:
  std::string path_;
  std::vector<std::size_t> conserved_;  // numbers of the columns
  std::vector<double> first_;           // their numbers in the first row
};

}  // namespace halocline::app
