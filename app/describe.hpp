// SPDX-License-Identifier: BSD-3-Clause
// Describes halo regions as MPI datatypes, in the role of the library's user.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "comm/halo/halo_spec.hpp"
#include "domain.hpp"
#include "dtype/datatype.hpp"

namespace halocline::app {

/// Returns MPI's type of a value.
MPI_Datatype mpi_type_of(Element element);

/// Describes boxes of stored points in the arrays at `addresses`, by the constructors that
/// `describe` names. All five ways give the same bytes in the same order. Owns the MPI types, so it
/// must outlive the construction of plans.
class RegionTypes {
 public:
  /// Prepares the type of a point. `element` is mpi_type_of() of its values. With layout aos a
  /// point is a contiguous type of all fields, so a region needs one type.
  RegionTypes(const Domain& domain, Describe describe, MPI_Datatype element,
              std::vector<void*> addresses);

  /// Returns the region of `box` in array `array`.
  /// \throws ConfigError if the box does not fit MPI's int arguments.
  comm::Region operator()(int array, const comm::Box& box);

 private:
  struct Described {
    dtype::Datatype type;
    std::int64_t offset;  ///< bytes from the array's first byte to the buffer argument
  };
  const Described& described(const comm::Box& box);
  Described make(const comm::Box& box) const;

  Describe describe_;
  comm::Int3 extents_;  // of an array in memory, with the padding of its rows; points
  std::vector<void*> addresses_;
  dtype::Datatype point_;
  std::int64_t point_bytes_;
  std::map<std::pair<comm::Int3, comm::Int3>, Described>
      types_;  ///< by begin and extent, shared by the arrays
};

}  // namespace halocline::app
