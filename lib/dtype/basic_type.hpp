// SPDX-License-Identifier: BSD-3-Clause
// MPI's predefined datatypes, C's and Fortran's: the leaves of every type.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace halocline::dtype {

/// One basic type as it stands in a type map: an uninterrupted piece of `size` bytes.
struct BasicType {
  std::string_view name;
  std::int64_t size;  ///< bytes
  std::int64_t
      alignment;  ///< bytes; decides the padding at the end of a type (MPI-3.1 section 4.1.6)
};

/// A predefined MPI datatype: one basic type, or the two of a pair type such as MPI_DOUBLE_INT,
/// which has padding at its end and, for MPI_SHORT_INT, a hole inside.
struct NamedType {
  struct Member {
    const BasicType* type;
    std::int64_t displacement;  ///< bytes
  };
  std::string_view name;  ///< MPI's name in lower case without MPI_: "double", "unsigned_char"
  MPI_Datatype handle;
  std::vector<Member> members;  ///< one or two, by ascending displacement
  std::ptrdiff_t index;         ///< position in named_types(), or -1: one of find_f90_type()
};

/// All predefined types that Halocline knows and this MPI has, in a fixed order. They live as long
/// as the process. The first call asks MPI for their sizes: it throws EnvironmentError unless MPI
/// is initialized and not finalized.
const std::vector<NamedType>& named_types();

/// The predefined type of that name or handle; nullptr if it is not among named_types(). By handle:
/// O(1), a few nanoseconds.
const NamedType* find_named_type(std::string_view name);
const NamedType* find_named_type(MPI_Datatype handle);

/// The kinds of Fortran's parametrised types (MPI-3.1 section 17.2.5).
enum class F90Kind { real, complex, integer };

/// What MPI_Type_create_f90_real, _complex or _integer make of these decimal digits and this
/// exponent range, as MPI takes them, MPI_UNDEFINED included; integers have a range alone. nullptr
/// where MPI has no such type; MPI then calls the error handler of MPI_COMM_WORLD first. It lives
/// as long as the process, its name is the call: "f90_real(15,307)". Local; may be called by
/// several threads.
const NamedType* find_f90_type(F90Kind kind, int precision, int range);

}  // namespace halocline::dtype
