// SPDX-License-Identifier: BSD-3-Clause
// Returns the rank and the number of ranks of a test.
#pragma once

#include <mpi.h>

namespace halocline::comm {

inline int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
inline int world_size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

}  // namespace halocline::comm
