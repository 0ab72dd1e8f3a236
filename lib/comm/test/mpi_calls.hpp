// SPDX-License-Identifier: BSD-3-Clause
// What a program asks MPI for, counted where the calls enter it (mpi_calls.cpp).
#pragma once

#include <cstdint>
#include <map>

namespace halocline::comm {

/// Since the last reset. Messages of persistent sends, when they are started.
struct MpiCalls {
  std::int64_t packs = 0;  ///< MPI_Pack, MPI_Unpack
  std::int64_t sendrecvs = 0;
  std::int64_t splits = 0;  ///< MPI_Comm_split, MPI_Comm_dup, MPI_Comm_split_type
  std::int64_t sends = 0;
  std::map<int, std::int64_t> bytes_to;  ///< by rank of MPI_COMM_WORLD
};
extern MpiCalls mpi_calls;

}  // namespace halocline::comm
