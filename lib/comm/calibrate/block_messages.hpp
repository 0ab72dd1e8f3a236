// SPDX-License-Identifier: BSD-3-Clause
// Measures messages of blocks with gaps between two ranks: packed by Halocline, and as the MPI
// moves derived datatypes. The interposer decides by these times who packs a message.
//
// Best peer: [PEA21] takes over every type. Its model knows what a pack costs, not what the MPI
// takes for the same message.
#pragma once

#include <mpi.h>

#include "comm/calibrate/grid.hpp"
#include "comm/calibrate/local_times.hpp"
#include "dtype/model/system_model.hpp"

namespace halocline::comm::detail {

/// Describes the blocks that are measured.
struct BlockGrid {
  dtype::PackTable::Axes axes;
  std::int64_t bytes_growth;  ///< approximate factor from a size to the next
  bool listed;                ///< by an indexed type at irregular distances; else by vectors
};

/// Returns the number of points that measure_block_messages() measures.
std::int64_t block_points(const BlockGrid& grid);
/// Returns the bytes of memory that each of the two ranks needs.
std::int64_t block_memory(const BlockGrid& grid);

/// Holds the memory of one rank of the pair. Throws std::bad_alloc.
struct BlockMemory {
  explicit BlockMemory(const BlockGrid& grid);
  std::int64_t field_bytes;
  TouchedMemory sent, received;   ///< fields of field_bytes bytes
  TouchedMemory packed, arrived;  ///< for packed bytes
};

/// Measures messages of all shapes of `grid`, alone and both ways at once, by both packers
/// in turns. The longer time of the two ranks counts. Call it on one rank of the pair, and
/// serve_block_messages() on the other rank.
///
/// Messages below 1 MiB take blocks elsewhere with each call, so that they are not in a cache.
/// Longer ones take the same blocks again. Thus the packer gains less: a program gets no less than
/// the model promises.
dtype::BlockTraffic measure_block_messages(MPI_Comm comm, int partner, const BlockMemory& memory,
                                           const BlockGrid& grid, const Effort& effort);

/// Answers until the partner has measured everything.
void serve_block_messages(MPI_Comm comm, int partner, const BlockMemory& memory,
                          const BlockGrid& grid);

}  // namespace halocline::comm::detail
