// SPDX-License-Identifier: BSD-3-Clause
// Counts the calls of a program where they enter MPI (mpi_calls.cpp).
#pragma once

#include <cstdint>
#include <map>

namespace halocline::comm {

/// Counts calls since the last reset. Messages of persistent sends count when they are started.
struct MpiCalls {
  std::int64_t packs = 0;  ///< calls of MPI_Pack and MPI_Unpack
  std::int64_t sendrecvs = 0;
  std::int64_t splits = 0;  ///< calls of MPI_Comm_split, MPI_Comm_dup and MPI_Comm_split_type
  std::int64_t sends = 0;
  std::map<int, std::int64_t> bytes_to;  ///< bytes sent, by rank of MPI_COMM_WORLD
};
extern MpiCalls mpi_calls;

}  // namespace halocline::comm
