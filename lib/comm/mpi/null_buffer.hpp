// SPDX-License-Identifier: BSD-3-Clause
// Finds buffers that a caller has forgotten.
#pragma once

#include <mpi.h>

#include "support/mpi_check.hpp"

namespace halocline::comm {

/// Tells if a buffer for data of `type` is null by mistake. In some MPIs, MPI_BOTTOM is null, too.
/// It is valid with a type of absolute addresses: then the data are not near address 0. Local.
inline bool is_null_by_mistake(const void* buffer, MPI_Datatype type) {
  constexpr MPI_Count kLowest = 1 << 22;  // programs are loaded there or above
  if (buffer != nullptr) return false;
  MPI_Count size = 0, begin = 0, extent = 0;
  HALOCLINE_MPI(MPI_Type_size_x(type, &size));
  HALOCLINE_MPI(MPI_Type_get_true_extent_x(type, &begin, &extent));
  return size > 0 && begin > -kLowest && begin < kLowest;
}

}  // namespace halocline::comm
