// SPDX-License-Identifier: BSD-3-Clause
// One line on a terminal that says how far the program is.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace halocline::app {

/// Rewrites one line on stderr, at most ten times a second: label, percent, time left. Silent
/// unless `enabled` (pass rank 0 and not --quiet) and stderr is a terminal. Local.
class Progress {
 public:
  Progress(bool enabled, std::string label, std::int64_t total);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Clears the line.
  ~Progress() { finish(); }

  /// `done` of `total` are done.
  void update(std::int64_t done);

  /// Clears the line; later updates are ignored.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  bool active_;
  bool drawn_ = false;
  std::string label_;
  std::int64_t total_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point last_{};
};

}  // namespace halocline::app
