// SPDX-License-Identifier: BSD-3-Clause
// Host memory that messages are sent from and received into.
//
// Best peer: MPI libraries keep such buffers registered. Where the kernel copies between processes
// of a node it does so page by page, so ours are on huge pages: results/gather has what that makes
// of a gather (fig3 and fig3-small-pages).
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

namespace halocline::dtype {

/// Of std::vector. Long arrays begin at a huge page of 2 MiB and take whole ones, where the system
/// has such (Linux: /sys/kernel/mm/transparent_hugepage/enabled is madvise or always).
template <class T>
struct HugePageAllocator {
  using value_type = T;
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);

  static constexpr std::size_t kHugePage = std::size_t{1} << 21;
  /// In bytes; shorter ones come from wherever `new` has them.
  static constexpr std::size_t kLong = std::size_t{1} << 17;

  HugePageAllocator() = default;
  template <class U>
  HugePageAllocator(const HugePageAllocator<U>&) noexcept {}  // NOLINT(google-explicit-constructor)

  /// What an array of so many bytes takes.
  static constexpr std::size_t allocated(std::size_t bytes) {
    return bytes < kLong ? bytes : (bytes + kHugePage - 1) / kHugePage * kHugePage;
  }

  /// std::bad_alloc if there is no memory.
  T* allocate(std::size_t n) {
    const std::size_t bytes = allocated(n * sizeof(T));
    if (bytes < kLong) return static_cast<T*>(::operator new(bytes));
    void* const out = std::aligned_alloc(kHugePage, bytes);
    if (out == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    madvise(out, bytes, MADV_HUGEPAGE);  // a wish: small pages do, too
#endif
    return static_cast<T*>(out);
  }
  void deallocate(T* array, std::size_t n) {
    if (n * sizeof(T) < kLong)
      ::operator delete(array);
    else
      std::free(array);
  }

  bool operator==(const HugePageAllocator&) const = default;
};

using MessageBuffer = std::vector<std::byte, HugePageAllocator<std::byte>>;

}  // namespace halocline::dtype
