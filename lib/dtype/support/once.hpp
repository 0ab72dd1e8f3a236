// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <mutex>
#include <utility>

namespace halocline {

/// Work that is done once, by whoever comes first while others wait; if it throws, the next one
/// tries again. std::call_once hangs then with glibc before 2.34 (its bug 18435). Thread-safe.
class Once {
 public:
  template <class F>
  void operator()(F&& work) {
    if (is_done_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(mutex_);
    if (is_done_.load(std::memory_order_relaxed)) return;
    std::forward<F>(work)();
    is_done_.store(true, std::memory_order_release);
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> is_done_{false};
};

}  // namespace halocline
