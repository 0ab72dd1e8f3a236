// SPDX-License-Identifier: BSD-3-Clause
// The arrays of the mini-app: their memory, here and on a device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "domain.hpp"
#include "dtype/device/resource_cache.hpp"

namespace halocline::app {

/// Where fields are.
enum class Storage {
  ordinary,                   ///< memory of this process alone, or of a device
  shared_window,              ///< that other ranks of the node can read
  shared_window_if_possible,  ///< `ordinary` for all fields where there is no shared memory
};

/// All fields of this rank: domain.arrays() arrays of stored points, each aligned to 4 KiB, in one
/// allocation; with a device, a second one in its memory, which is exchanged and computed on, while
/// the first is what values are set and checked in.
template <class T>
class FieldSet {
 public:
  /// Allocates; the contents are undefined. `resources`: of the device, nullptr for fields of the
  /// host alone. `memory`: bytes(domain) of them, aligned to 4 KiB, which belong to the caller, to
  /// be used in place of an allocation in the host's memory. Throws EnvironmentError if there is no
  /// memory.
  FieldSet(const Domain& domain, dtype::ResourceCache* resources, std::byte* memory = nullptr);

  /// What all arrays together need.
  static std::int64_t bytes(const Domain& domain);

  int arrays() const { return arrays_; }
  /// Of each array, ghosts included: planes in z, rows in y, elements in a row.
  std::array<std::size_t, 3> extents() const { return extents_; }

  /// Where an array begins in the memory of the host, and where that one does which is exchanged
  /// and computed on.
  T* address(int index) const { return at(host_memory_, index); }
  T* working_address(int index) const;
  /// Likewise, for all arrays.
  std::vector<void*> addresses() const;
  std::vector<void*> working_addresses() const;

  /// Whether kernels of the host cannot work on the arrays that are exchanged.
  bool on_device() const;

  /// Copies all arrays between the host's memory and the one that is exchanged; complete on return.
  /// Nothing without a device.
  void to_device() const;
  void from_device() const;

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  T* at(std::byte* memory, int index) const {
    return reinterpret_cast<T*>(memory + static_cast<std::size_t>(index) * bytes_);
  }
  std::size_t all_bytes() const { return bytes_ * static_cast<std::size_t>(arrays_); }

  dtype::ResourceCache* resources_;
  int arrays_;
  std::array<std::size_t, 3> extents_;
  std::size_t bytes_ = 0;               // of each array
  std::unique_ptr<void, Free> memory_;  // unless it is the caller's
  std::byte* host_memory_;
  dtype::ResourceCache::Buffer device_memory_;
};

}  // namespace halocline::app
