// SPDX-License-Identifier: BSD-3-Clause
// Writes a table of numbers over time, as CSV that grows while a run goes on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace halocline::app {

/// Is the file of a time series: a header, and one row for each step. Used on one rank.
class TimeSeries {
 public:
  /// Opens the file at `path`, or makes it. Drops rows of `first_step` and later, which a run that
  /// goes on from a checkpoint writes again.
  /// \param columns names of the numbers behind step, t and dt
  /// \throws ConfigError if the file has other columns
  /// \throws EnvironmentError if it cannot be written
  TimeSeries(std::string path, const std::vector<std::string>& columns, std::int64_t first_step);

  /// Appends a row. The row is in the file on return.
  /// \throws EnvironmentError if it cannot be written
  void append(std::int64_t step, double time, double dt, const std::vector<double>& numbers) const;

 private:
  std::string path_;
};

}  // namespace halocline::app
