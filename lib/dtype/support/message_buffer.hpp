// SPDX-License-Identifier: BSD-3-Clause
// Host memory that messages are sent from and received into.
//
// Best peer: MPI libraries keep such buffers registered. Between processes of a node the kernel
// copies page by page, so ours are on large pages: on the machine of results/gather a gather of
// 256 KiB from each of four ranks takes two thirds of its time on small ones.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

namespace halocline::dtype {

/// Of std::vector. Long arrays begin at a huge page and fill whole ones, where the system has such
/// (Linux: /sys/kernel/mm/transparent_hugepage/enabled is madvise or always).
template <class T>
struct HugePageAllocator {
  using value_type = T;

  static constexpr std::size_t kHugePage = std::size_t{1} << 21;
  /// In bytes; shorter ones come from wherever `new` has them.
  static constexpr std::size_t kLong = std::size_t{1} << 17;

  HugePageAllocator() = default;
  template <class U>
  HugePageAllocator(const HugePageAllocator<U>&) {}  // NOLINT(google-explicit-constructor)

  /// std::bad_alloc if there is no memory.
  T* allocate(std::size_t n) {
    const std::size_t bytes = n * sizeof(T);
    if (bytes < kLong) return static_cast<T*>(::operator new(bytes));
    const std::size_t whole = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    void* const out = std::aligned_alloc(kHugePage, whole);
    if (out == nullptr) throw std::bad_alloc();
    madvise(out, whole, MADV_HUGEPAGE);  // a wish: small pages do, too
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
