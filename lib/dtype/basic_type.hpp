// SPDX-License-Identifier: BSD-3-Clause
// Lists MPI's predefined datatypes, those of C and of Fortran: the leaves of every type.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace halocline::dtype {

/// Describes one basic type of a type map: an uninterrupted piece of `size` bytes.
struct BasicType {
  std::string_view name;
  std::int64_t size;       ///< bytes
  std::int64_t alignment;  ///< bytes; pads the end of a type (MPI-3.1 section 4.1.6)
};

/// Describes a predefined MPI datatype: one basic type, or the two of a pair type. The pair type
/// MPI_DOUBLE_INT has padding at its end; MPI_SHORT_INT has a hole inside.
struct NamedType {
  struct Member {
    const BasicType* type;
    std::int64_t displacement;  ///< bytes
  };
  std::string_view name;  ///< MPI's name in lower case without MPI_: "double", "unsigned_char"
  MPI_Datatype handle;
  std::vector<Member> members;  ///< one or two, by ascending displacement
  std::ptrdiff_t index;         ///< position in named_types(); -1 if from find_f90_type()
};

/// Returns all predefined types that Halocline knows and this MPI has, in a fixed order. They live
/// as long as the process. The first call asks MPI for their sizes. That call throws
/// EnvironmentError unless MPI is initialized and not finalized.
const std::vector<NamedType>& named_types();

/// Returns the predefined type of that name; nullptr if it is not among named_types(). O(types).
const NamedType* find_named_type(std::string_view name);
/// Returns the predefined type of that handle; nullptr if it is not among named_types(). O(1), a
/// few nanoseconds.
const NamedType* find_named_type(MPI_Datatype handle);

/// Names the kinds of Fortran's parametrised types (MPI-3.1 section 17.2.5).
enum class F90Kind { real, complex, integer };

/// Returns the type that MPI_Type_create_f90_real, _complex or _integer makes of these decimal
/// digits and this exponent range. Takes the numbers as MPI does, MPI_UNDEFINED included; ignores
/// `precision` for integers. Returns nullptr if MPI has no such type; MPI then calls the error
/// handler of MPI_COMM_WORLD first. The type lives as long as the process. Its name is the call:
/// "f90_real(15,307)". Local; thread-safe.
const NamedType* find_f90_type(F90Kind kind, int precision, int range);

}  // namespace halocline::dtype
