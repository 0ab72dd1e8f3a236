// SPDX-License-Identifier: BSD-3-Clause
// Owns the arrays of the mini-app: their memory on the host and on a device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "comm/node/paged_memory.hpp"
#include "domain.hpp"
#include "dtype/device/resource_cache.hpp"

namespace halocline::app {

/// Lists the kinds of memory for fields.
enum class Storage {
  ordinary,                   ///< memory of this process alone, or of a device
  shared_window,              ///< memory that other ranks of the node can read
  shared_window_if_possible,  ///< a shared window, or `ordinary` for all fields if there is no
                              ///< shared memory
};

/// Owns all fields of this rank: domain.arrays() arrays of stored points in one allocation. Each
/// array begins with the padding before its first point, at a multiple of 4 KiB. With a device
/// there is a second allocation in its memory. Then the arrays on the device are exchanged and
/// computed on. The arrays on the host are used to set and check values.
template <class T>
class FieldSet {
 public:
  /// Allocates the arrays; their contents are undefined.
  /// \param resources resources of the device; nullptr for fields of the host alone.
  /// \param memory bytes(domain) bytes of the caller, aligned to 4 KiB, used instead of an
  /// allocation on the host.
  /// \throws EnvironmentError if there is not enough memory.
  FieldSet(const Domain& domain, dtype::ResourceCache* resources, std::byte* memory = nullptr);

  /// Returns the bytes of all arrays together.
  static std::int64_t bytes(const Domain& domain);

  int arrays() const { return arrays_; }
  /// Returns the extents of each array, ghosts included: planes in z, rows in y, elements from row
  /// to row. Behind the stored points of a row lies the padding up to the next one.
  std::array<std::size_t, 3> extents() const { return extents_; }

  /// Returns the first stored point of an array in host memory. working_address() returns that of
  /// the array that is exchanged and computed on.
  T* address(int index) const { return at(host_memory_, index); }
  T* working_address(int index) const;
  /// Returns the first stored points of all arrays in host memory, or those of the working arrays.
  std::vector<void*> addresses() const;
  std::vector<void*> working_addresses() const;

  /// Returns the share of the arrays in host memory that is on huge pages, 0 to 1, of what has been
  /// touched. Returns nullopt if the system does not say.
  std::optional<double> share_on_huge_pages() const {
    return comm::share_on_huge_pages(host_memory_, static_cast<std::int64_t>(all_bytes()));
  }

  /// Tells if the working arrays are out of reach for kernels on the host.
  bool on_device() const;

  /// Copies all arrays from host memory to the working arrays, or back; complete on return. Does
  /// nothing without a device.
  void to_device() const;
  void from_device() const;

 private:
  T* at(std::byte* memory, int index) const {
    return reinterpret_cast<T*>(memory + static_cast<std::size_t>(index) * bytes_) + left_padding_;
  }
  std::size_t all_bytes() const { return bytes_ * static_cast<std::size_t>(arrays_); }

  dtype::ResourceCache* resources_;
  int arrays_;
  std::int64_t left_padding_;  // elements
  std::array<std::size_t, 3> extents_;
  std::size_t bytes_ = 0;     // of each array
  comm::PagedMemory memory_;  // empty if the memory is the caller's
  std::byte* host_memory_;
  dtype::ResourceCache::Buffer device_memory_;
};

}  // namespace halocline::app
