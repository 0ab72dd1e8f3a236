// SPDX-License-Identifier: BSD-3-Clause
// The arrays of the mini-app and what is known about every element in them.
#pragma once

#include <Kokkos_Core.hpp>
#include <memory>
#include <vector>

#include "domain.hpp"

namespace halocline::app {

/// Where the kernels of this program run.
using HostSpace = Kokkos::DefaultHostExecutionSpace;

/// One array with its ghosts: z, y, element in the row (fastest). A row holds points in x; with
/// layout aos each point is all fields of it.
template <class T>
using ArrayView = Kokkos::View<T***, Kokkos::LayoutRight, HostSpace::memory_space,
                               Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/// All fields of this rank: domain.arrays() arrays of stored points, each aligned to 4 KiB, in one
/// allocation.
template <class T>
class FieldSet {
 public:
  /// Allocates; the contents are undefined. Throws EnvironmentError if there is no memory.
  explicit FieldSet(const Domain& domain);

  ArrayView<T> array(int index) const { return arrays_[static_cast<std::size_t>(index)]; }
  int arrays() const { return static_cast<int>(arrays_.size()); }

  /// First byte of each array.
  std::vector<void*> addresses() const;

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
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
  };

  KOKKOS_INLINE_FUNCTION Place operator()(std::int64_t z, std::int64_t y,
                                          std::int64_t element) const {
    const std::int64_t stored[3] = {element / elements_per_point, y, z};
    std::int64_t at[3];
    bool owned = true, outside = false;
    for (int axis = 0; axis < 3; ++axis) {
      owned = owned && stored[axis] >= radius && stored[axis] < radius + extent[axis];
      at[axis] = first[axis] + stored[axis];
      if (at[axis] >= 0 && at[axis] < global[axis]) continue;
      outside = outside || !periodic;
      at[axis] = (at[axis] + global[axis]) % global[axis];
    }
    return {at[0], at[1],  at[2], array + static_cast<int>(element % elements_per_point),
            owned, outside};
  }

  /// Number of a field's point in the whole domain: the same for every decomposition and layout.
  KOKKOS_INLINE_FUNCTION std::uint64_t global_index(const Place& p) const {
    return static_cast<std::uint64_t>(((p.z * global[1] + p.y) * global[0] + p.x) * fields +
                                      p.field);
  }
};

}  // namespace halocline::app
