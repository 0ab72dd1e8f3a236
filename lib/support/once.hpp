// SPDX-License-Identifier: BSD-3-Clause
// Does work once among threads.
#pragma once

#include <atomic>
#include <mutex>
#include <utility>

namespace halocline {

/// Does work once: the first thread does it, while other threads wait. If the work throws, the next
/// thread tries again. std::call_once hangs in that case with glibc before 2.34 (glibc bug 18435).
/// Thread-safe.
class Once {
 public:
  template <class F>
  void operator()(F&& work) {
    if (is_done()) return;
    const std::lock_guard lock(mutex_);
    if (is_done_.load(std::memory_order_relaxed)) return;
    std::forward<F>(work)();
    is_done_.store(true, std::memory_order_release);
  }

  /// Tells if the work is done.
  bool is_done() const { return is_done_.load(std::memory_order_acquire); }

 private:
  std::mutex mutex_;
  std::atomic<bool> is_done_{false};
};

}  // namespace halocline
