// SPDX-License-Identifier: BSD-3-Clause
#include "progress.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "table.hpp"

namespace halocline::app {

namespace {

constexpr auto kInterval = std::chrono::milliseconds(100);
constexpr const char* kClear = "\r\x1b[K";  // to the first column, erase to the end of the line

// Whether a person sees what is written to stderr. Open MPI gives its ranks a pipe for it and
// copies that to mpirun's own stderr, so the launcher, if it is the parent process, is asked as
// well.
bool stderr_reaches_terminal() {
  if (isatty(STDERR_FILENO) == 1) return true;
  const auto launcher = "/proc/" + std::to_string(getppid()) + "/fd/2";
  const int descriptor = open(launcher.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool terminal = isatty(descriptor) == 1;
  close(descriptor);
  return terminal;
}

}  // namespace

Progress::Progress(bool enabled, std::string label, std::int64_t total)
    : active_(enabled && stderr_reaches_terminal()),
      label_(std::move(label)),
      total_(std::max<std::int64_t>(total, 1)) {}

void Progress::update(std::int64_t done) {
  if (!active_) return;
  const auto now = Clock::now();
  if (drawn_ && now - last_ < kInterval) return;
  const double fraction = static_cast<double>(done) / static_cast<double>(total_);
  const double elapsed = std::chrono::duration<double>(now - begin_).count();
  std::string line = kClear + label_ + " " + format_fixed(100 * fraction, 0) + " %";
  if (done > 0) line += ", " + format_seconds(elapsed * (1 - fraction) / fraction) + " left";
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  last_ = now;
  drawn_ = true;
}

void Progress::finish() {
  if (drawn_) {
    std::fputs(kClear, stderr);
    std::fflush(stderr);
  }
  active_ = drawn_ = false;
}

}  // namespace halocline::app
