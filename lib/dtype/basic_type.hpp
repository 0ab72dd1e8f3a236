// SPDX-License-Identifier: BSD-3-Clause
// MPI's predefined C datatypes: the leaves of every type.
#pragma once

#include <mpi.h>

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
};

/// All predefined types that Halocline knows, in a fixed order. They live as long as the process.
const std::vector<NamedType>& named_types();

/// The predefined type of that name or handle; nullptr if it is not among named_types().
const NamedType* find_named_type(std::string_view name);
const NamedType* find_named_type(MPI_Datatype handle);

}  // namespace halocline::dtype
