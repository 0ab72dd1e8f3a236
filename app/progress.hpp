// SPDX-License-Identifier: BSD-3-Clause
// Shows on one line of a terminal how far the program is.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace halocline::app {

/// Rewrites one line on the terminal, at most ten times a second: label, percent, time left. Silent
/// unless `enabled` (pass rank 0 and not --quiet) and stderr is a terminal. Under mpirun it writes
/// to mpirun's terminal itself. The reason: mpirun forwards stdout and stderr separately, and a
/// table could come before the line is cleared. Local.
class Progress {
 public:
  Progress(bool enabled, std::string label, std::int64_t total);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Clears the line.
  ~Progress() { finish(); }

  /// Shows that `done` of `total` are done: `detail`, or the percentage.
  void update(std::int64_t done, const std::string& detail = "");

  /// Clears the line; later updates are ignored.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  void write(const std::string& text) const;

  int terminal_;  // descriptor; -1: silent
  bool drawn_ = false;
  std::string label_;
  std::int64_t total_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point last_{};
};

}  // namespace halocline::app
