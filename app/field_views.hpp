// SPDX-License-Identifier: BSD-3-Clause
// What kernels see of the fields, and what is known about every element in them.
#pragma once

#include <Kokkos_Core.hpp>

#include "fields.hpp"

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

/// An array in the memory of the host.
template <class T>
ArrayView<T> array_of(const FieldSet<T>& fields, int index) {
  const auto [planes, rows, row] = fields.extents();
  return ArrayView<T>(fields.address(index), planes, rows, row);
}

/// The array that is exchanged and computed on, for kernels of that space: HostSpace unless
/// on_device().
template <class ExecutionSpace, class T>
ArrayView<T, ExecutionSpace> working_array_of(const FieldSet<T>& fields, int index) {
  const auto [planes, rows, row] = fields.extents();
  return ArrayView<T, ExecutionSpace>(fields.working_address(index), planes, rows, row);
}

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

  ElementMap(const Domain& domain, int array_index)
      : radius(domain.halo.radius),
        elements_per_point(domain.elements_per_point()),
        array(array_index),
        fields(domain.fields),
        periodic(domain.decomposition.periodic()) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      first[axis] = domain.owned.begin[axis] - radius;
      extent[axis] = domain.owned.extent[axis];
      global[axis] = domain.decomposition.global()[axis];
    }
  }

  struct Place {
    std::int64_t x, y, z;  ///< global; where the domain is periodic, of the point's home
    int field;
    bool owned;    ///< by this rank, not a ghost
    bool outside;  ///< beyond an open boundary
    int ghost;     ///< of a ghost, the index of the comm::Direction in which it lies
  };

  KOKKOS_INLINE_FUNCTION Place operator()(std::int64_t z, std::int64_t y,
                                          std::int64_t element) const {
    // Most layouts have one, and divisions take longer than all else here.
    const auto x = elements_per_point == 1 ? element : element / elements_per_point;
    const std::int64_t stored[3] = {x, y, z};
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
            array + static_cast<int>(element - x * elements_per_point),
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
