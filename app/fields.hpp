// SPDX-License-Identifier: BSD-3-Clause
// The arrays of the mini-app and what is known about every element in them.
#pragma once

#include <Kokkos_Core.hpp>
#include <memory>
#include <vector>

#include "domain.hpp"
#include "dtype/device/resource_cache.hpp"

namespace halocline::app {

/// Where the kernels of this program run.
using HostSpace = Kokkos::DefaultHostExecutionSpace;
/// Likewise for fields in the memory of a device; without one, the same.
using DeviceSpace = Kokkos::DefaultExecutionSpace;

/// One array with its ghosts: z, y, element in the row (fastest). A row holds points in x; with
/// layout aos each point is all fields of it.
template <class T, class ExecutionSpace = HostSpace>
using ArrayView = Kokkos::View<T***, Kokkos::LayoutRight, typename ExecutionSpace::memory_space,
                               Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

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

  /// An array in the memory of the host.
  ArrayView<T> array(int index) const { return arrays_[static_cast<std::size_t>(index)]; }
  int arrays() const { return static_cast<int>(arrays_.size()); }

  /// The array that is exchanged and computed on, for kernels of that space: HostSpace unless
  /// on_device().
  template <class ExecutionSpace>
  ArrayView<T, ExecutionSpace> working_array(int index) const {
    const auto& host = array(index);
    return ArrayView<T, ExecutionSpace>(reinterpret_cast<T*>(working_address(index)),
                                        host.extent(0), host.extent(1), host.extent(2));
  }
  /// Whether kernels of the host cannot work on these fields.
  bool on_device() const;

  /// First byte of each array, in the host's memory and of those that are exchanged.
  std::vector<void*> addresses() const;
  std::vector<void*> working_addresses() const;

  /// Copies all arrays between the host's memory and the one that is exchanged; complete on return.
  /// Nothing without a device.
  void to_device() const;
  void from_device() const;

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::byte* working_address(int index) const;

  dtype::ResourceCache* resources_;
  std::size_t bytes_ = 0;               // of each array
  std::unique_ptr<void, Free> memory_;  // unless it is the caller's
  std::byte* host_memory_;
  dtype::ResourceCache::Buffer device_memory_;
  std::vector<ArrayView<T>> arrays_;
};

/// Maps an element's place in an array to its field and global point; small enough to be captured
/// by kernels.
struct ElementMap {
  std::int64_t first[3];   ///< global coordinate of the first stored point (negative in the ghosts
                           ///< of the first rank)
  std::int64_t extent[3];  ///< owned points
  std::int64_t global[3];
  std::int64_t radius;
  int elements_per_point;
  int array;
  int fields;
  bool periodic;

  ElementMap(const Domain& domain, int array_index);

  struct Place {
    std::int64_t x, y, z;  ///< global; where the domain is periodic, of the point's home
    int field;
    bool owned;    ///< by this rank, not a ghost
    bool outside;  ///< beyond an open boundary
    int ghost;     ///< of a ghost, the index of the comm::Direction in which it lies
  };

  KOKKOS_INLINE_FUNCTION Place operator()(std::int64_t z, std::int64_t y,
                                          std::int64_t element) const {
    const std::int64_t stored[3] = {element / elements_per_point, y, z};
    std::int64_t at[3];
    bool outside = false;
    int cell = 13, weight = 1;  // of the 27 around and with the owned points
    for (int axis = 0; axis < 3; ++axis, weight *= 3) {
      cell += stored[axis] < radius ? -weight : stored[axis] < radius + extent[axis] ? 0 : weight;
      at[axis] = first[axis] + stored[axis];
      if (at[axis] >= 0 && at[axis] < global[axis]) continue;
      outside = outside || !periodic;
      at[axis] = (at[axis] + global[axis]) % global[axis];
    }
    return {at[0],
            at[1],
            at[2],
            array + static_cast<int>(element % elements_per_point),
            cell == 13,
            outside,
            cell < 13 ? cell : cell - 1};
  }

  /// Number of a field's point in the whole domain: the same for every decomposition and layout.
  KOKKOS_INLINE_FUNCTION std::uint64_t global_index(const Place& p) const {
    return static_cast<std::uint64_t>(((p.z * global[1] + p.y) * global[0] + p.x) * fields +
                                      p.field);
  }
};

}  // namespace halocline::app
