// SPDX-License-Identifier: BSD-3-Clause
#include "progress.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "table.hpp"

namespace halocline::app {

namespace {

constexpr auto kInterval = std::chrono::milliseconds(100);
constexpr const char* kClear = "\r\x1b[K";  // to the first column, then erase the line

// Returns a descriptor of the terminal that shows stderr, or -1. Open MPI gives its ranks a pipe as
// stderr and copies that to mpirun's own stderr. So the stderr of the launcher, the parent process,
// is checked.
int open_terminal() {
  if (isatty(STDERR_FILENO) == 1) return dup(STDERR_FILENO);
  if (std::getenv("OMPI_COMM_WORLD_RANK") == nullptr) return -1;  // a shell may redirect stderr
  const auto launcher = "/proc/" + std::to_string(getppid()) + "/fd/2";
  const int descriptor = open(launcher.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor >= 0 && isatty(descriptor) == 1) return descriptor;
  if (descriptor >= 0) close(descriptor);
  return -1;
}

}  // namespace

Progress::Progress(bool enabled, std::string label, std::int64_t total)
    : terminal_(enabled ? open_terminal() : -1),
      label_(std::move(label)),
      total_(std::max<std::int64_t>(total, 1)) {}

void Progress::write(const std::string& text) const {
  // A partly written line does no harm.
  [[maybe_unused]] const auto written = ::write(terminal_, text.data(), text.size());
}

void Progress::update(std::int64_t done, const std::string& detail) {
  if (terminal_ < 0 || done >= total_) return;
  const auto now = Clock::now();
  if (drawn_ && now - last_ < kInterval) return;
  const double fraction = static_cast<double>(done) / static_cast<double>(total_);
  const double elapsed = std::chrono::duration<double>(now - begin_).count();
  std::string line =
      kClear + label_ + " " + (detail.empty() ? format_fixed(100 * fraction, 0) + " %" : detail);
  if (done > 0) line += ", " + format_seconds(elapsed * (1 - fraction) / fraction) + " left";
  write(line);
  last_ = now;
  drawn_ = true;
}

void Progress::finish() {
  if (drawn_) write(kClear);
  if (terminal_ >= 0) close(terminal_);
  terminal_ = -1;
  drawn_ = false;
}

}  // namespace halocline::app
