// SPDX-License-Identifier: BSD-3-Clause
// Shows the arrays of fields to kernels, and maps elements to fields and global points.
#pragma once

#include <Kokkos_Core.hpp>

#include "fields.hpp"

namespace halocline::app {

/// Is the execution space of this program's kernels on the host.
using HostSpace = Kokkos::DefaultHostExecutionSpace;
/// Is the execution space of kernels on fields in device memory; without a device it is HostSpace.
using DeviceSpace = Kokkos::DefaultExecutionSpace;

/// Views one array with its ghosts. Axis order: z, y, element in the row (fastest). A row holds
/// points in x, then padding; with layout aos a point consists of all its fields.
template <class T, class ExecutionSpace = HostSpace>
using ArrayView = Kokkos::View<T***, Kokkos::LayoutRight, typename ExecutionSpace::memory_space,
                               Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/// Returns a view of an array in the memory of the host.
template <class T>
ArrayView<T> array_of(const FieldSet<T>& fields, int index) {
  const auto [planes, rows, row] = fields.extents();
  return ArrayView<T>(fields.address(index), planes, rows, row);
}

/// Returns a view of the working array, which is exchanged and computed on. Its kernels run in
/// ExecutionSpace: HostSpace unless fields.on_device().
template <class ExecutionSpace, class T>
ArrayView<T, ExecutionSpace> working_array_of(const FieldSet<T>& fields, int index) {
  const auto [planes, rows, row] = fields.extents();
  return ArrayView<T, ExecutionSpace>(fields.working_address(index), planes, rows, row);
}

/// Maps an element's place in an array to its field and global point. Small enough to be captured
/// by kernels.
struct ElementMap {
  std::int64_t first[3];   ///< global coordinate of the first stored point (negative in the ghosts
                           ///< of the first rank)
  std::int64_t extent[3];  ///< owned points
  std::int64_t global[3];
  std::int64_t radius[3];
  int elements_per_point;
  int parts;
  int array;
  int fields;
  bool periodic[3];

  ElementMap(const Domain& domain, int array_index)
      : elements_per_point(domain.elements_per_point()),
        parts(domain.parts),
        array(array_index),
        fields(domain.fields) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      radius[axis] = domain.halo.radius[axis];
      first[axis] = domain.owned.begin[axis] - radius[axis];
      extent[axis] = domain.owned.extent[axis];
      global[axis] = domain.decomposition.global()[axis];
      periodic[axis] = domain.decomposition.periodic()[axis];
    }
  }

  struct Place {
    std::int64_t x, y, z;  ///< global coordinates; those of a ghost are wrapped around
    int field;
    int part;      ///< 1 for the imaginary part of a complex value
    bool owned;    ///< true if this rank owns the point; false for a ghost
    bool outside;  ///< true beyond an open boundary
    int ghost;     ///< for a ghost, the index of the comm::Direction in which it lies
  };

  KOKKOS_INLINE_FUNCTION Place operator()(std::int64_t z, std::int64_t y,
                                          std::int64_t element) const {
    // Most layouts have one element per point, and a division takes longer than all other steps.
    const auto x = elements_per_point == 1 ? element : element / elements_per_point;
    const std::int64_t stored[3] = {x, y, z};
    std::int64_t at[3];
    bool outside = false;
    int cell = 13, weight = 1;  // number of a cell among 27: the owned points and the cells around
                                // them
    for (int axis = 0; axis < 3; ++axis, weight *= 3) {
      if (stored[axis] < radius[axis])
        cell -= weight;
      else if (stored[axis] >= radius[axis] + extent[axis])
        cell += weight;
      at[axis] = first[axis] + stored[axis];
      if (at[axis] >= 0 && at[axis] < global[axis]) continue;
      outside = outside || !periodic[axis];
      at[axis] = (at[axis] + global[axis]) % global[axis];
    }
    const auto number = static_cast<int>(element - x * elements_per_point);
    return {at[0],
            at[1],
            at[2],
            array + (parts == 1 ? number : number / parts),
            parts == 1 ? 0 : number % parts,
            cell == 13,
            outside,
            cell < 13 ? cell : cell - 1};
  }

  /// Returns the number of an element in the whole domain: the same for every decomposition
  /// and layout.
  KOKKOS_INLINE_FUNCTION std::uint64_t global_index(const Place& p) const {
    const auto point = (p.z * global[1] + p.y) * global[0] + p.x;
    return static_cast<std::uint64_t>((point * fields + p.field) * parts + p.part);
  }
};

/// Is the policy of loops over all elements of an array on the host: z, y, element in the row.
using HostPolicy =
    Kokkos::MDRangePolicy<HostSpace, Kokkos::Rank<3>, Kokkos::IndexType<std::int64_t>>;

/// Calls body(element, place) for every stored element of every array in host memory.
template <class T, class Body>
void for_each_element(const char* label, const Domain& domain, const FieldSet<T>& fields,
                      Body body) {
  const auto [nx, ny, nz] = domain.halo.stored();
  for (int a = 0; a < fields.arrays(); ++a) {
    const auto view = array_of(fields, a);
    const ElementMap map(domain, a);
    Kokkos::parallel_for(
        label, HostPolicy({0, 0, 0}, {nz, ny, nx * domain.elements_per_point()}),
        [=](std::int64_t z, std::int64_t y, std::int64_t e) { body(view(z, y, e), map(z, y, e)); });
  }
  HostSpace().fence(label);
}

/// Reduces one array over its elements and its padding. ElementMap says that padding is not owned.
/// The caller combines arrays and ranks.
template <class T, class Reducer, class Body>
typename Reducer::value_type reduce_array(const char* label, const ArrayView<T>& view, Body body) {
  typename Reducer::value_type result{};
  Kokkos::parallel_reduce(
      label, HostPolicy({0, 0, 0}, {view.extent_int(0), view.extent_int(1), view.extent_int(2)}),
      body, Reducer(result));
  return result;
}

}  // namespace halocline::app
