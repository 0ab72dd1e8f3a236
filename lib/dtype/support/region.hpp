// SPDX-License-Identifier: BSD-3-Clause
// Parts of the work by name, for profilers.
//
// Best peer: Kokkos::Profiling::ScopedRegion asks for Kokkos wherever a region is, and NVTX for
// CUDA's headers; here the libraries name their parts, and a program says who is told.
#pragma once

#include <atomic>

namespace halocline {

/// Called by the thread whose region begins or ends, last begun first ended.
struct RegionHooks {
  void (*push)(const char* name);
  void (*pop)();
};

namespace detail {
inline std::atomic<const RegionHooks*> region_hooks = nullptr;
}

/// Who is told of regions that begin from now on; nullptr: nobody. `hooks` must outlive them.
/// Thread-safe.
inline void set_region_hooks(const RegionHooks* hooks) noexcept {
  detail::region_hooks.store(hooks, std::memory_order_release);
}

/// A part of this thread's work, as long as it lives. A load and a branch where nobody is told.
class Region {
 public:
  /// `name` is read at once.
  explicit Region(const char* name) : hooks_(detail::region_hooks.load(std::memory_order_acquire)) {
    if (hooks_ != nullptr) hooks_->push(name);
  }
  ~Region() {
    if (hooks_ != nullptr) hooks_->pop();
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

 private:
  const RegionHooks* hooks_;
};

}  // namespace halocline
