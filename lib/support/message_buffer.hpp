// SPDX-License-Identifier: BSD-3-Clause
// Provides host memory from which messages are sent and into which they are received.
//
// Best peer: MPI libraries keep such buffers registered. Between processes of a node, the kernel
// may copy page by page, so ours are on huge pages. results/gather shows the effect on a gather
// (fig3 and fig3-small-pages).
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

namespace halocline {

/// Allocates for std::vector; puts arrays of 128 KiB and more on huge pages. Such an array begins
/// at a huge page of 2 MiB and takes whole huge pages. Pages stay small if the system has no huge
/// pages to give. On Linux, /sys/kernel/mm/transparent_hugepage/enabled must be madvise or always.
template <class T>
struct HugePageAllocator {
  using value_type = T;
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);

  static constexpr std::size_t kHugePage = std::size_t{1} << 21;
  /// Is the least number of bytes of an array on huge pages. Shorter arrays come from `operator
  /// new`.
  static constexpr std::size_t kLong = std::size_t{1} << 17;

  HugePageAllocator() = default;
  template <class U>
  HugePageAllocator(const HugePageAllocator<U>&) noexcept {}  // NOLINT(google-explicit-constructor)

  /// Returns the bytes that an array of `bytes` bytes takes: whole huge pages from kLong on.
  static constexpr std::size_t allocated(std::size_t bytes) {
    return bytes < kLong ? bytes : (bytes + kHugePage - 1) / kHugePage * kHugePage;
  }

  /// Allocates memory for `n` objects. Throws std::bad_alloc if there is no memory.
  T* allocate(std::size_t n) {
    const std::size_t bytes = allocated(n * sizeof(T));
    if (bytes < kLong) return static_cast<T*>(::operator new(bytes));
    void* const out = std::aligned_alloc(kHugePage, bytes);
    if (out == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    madvise(out, bytes, MADV_HUGEPAGE);  // only a hint: small pages work, too
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

}  // namespace halocline
