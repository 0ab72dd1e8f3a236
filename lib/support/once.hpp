// SPDX-License-Identifier: BSD-3-Clause
// Does work once among threads.
#pragma once

#include <atomic>
#include <mutex>

namespace halocline {

/// Does work once: the first thread does it, while other threads wait. If the work throws, the next
/// thread tries again. std::call_once hangs in that case with glibc before 2.34 (glibc bug 18435).
/// Thread-safe.
class Once {
 public:
  template <class F>
  void operator()(F&& work) {
    if (!is_done_.load(std::memory_order_acquire)) do_work(work);
  }

 private:
  // Is not inlined: once the work is done, a caller only tests a flag.
  template <class F>
  [[gnu::noinline, gnu::cold]] void do_work(F& work) {
    const std::lock_guard lock(mutex_);
    if (is_done_.load(std::memory_order_relaxed)) return;
    work();
    is_done_.store(true, std::memory_order_release);
  }

  std::mutex mutex_;
  std::atomic<bool> is_done_{false};
};

}  // namespace halocline
