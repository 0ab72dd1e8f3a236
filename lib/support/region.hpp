// SPDX-License-Identifier: BSD-3-Clause
// Names parts of the work for profilers.
//
// Best peer: Kokkos::Profiling::ScopedRegion needs Kokkos wherever a region is, and NVTX needs
// CUDA's headers. Here the libraries name their parts, and the program chooses the profiler.
#pragma once

#include <atomic>

namespace halocline {

/// Holds the functions that are called at the begin and the end of a region. The thread of the
/// region calls them. The last region that a thread began ends first.
struct RegionHooks {
  void (*push)(const char* name);
  void (*pop)();
};

namespace detail {
inline std::atomic<const RegionHooks*> region_hooks = nullptr;
}

/// Sets the hooks of all regions that begin from now on; nullptr: no hooks. `hooks` must outlive
/// these regions. Thread-safe.
inline void set_region_hooks(const RegionHooks* hooks) noexcept {
  detail::region_hooks.store(hooks, std::memory_order_release);
}

/// Marks a part of this thread's work, for as long as the object lives. Costs a load and a branch
/// if there are no hooks.
class ProfileRegion {
 public:
  /// Begins a region. `name` is read at once.
  explicit ProfileRegion(const char* name)
      : hooks_(detail::region_hooks.load(std::memory_order_acquire)) {
    if (hooks_ != nullptr) hooks_->push(name);
  }
  ~ProfileRegion() {
    if (hooks_ != nullptr) hooks_->pop();
  }
  ProfileRegion(const ProfileRegion&) = delete;
  ProfileRegion& operator=(const ProfileRegion&) = delete;

 private:
  const RegionHooks* hooks_;
};

}  // namespace halocline
