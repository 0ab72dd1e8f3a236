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
#include "dtype/select/system_model.hpp"

namespace halocline::comm::detail {

/// Returns the number of points that measure_block_messages() measures.
std::int64_t block_points(const Grid& grid);

/// Measures messages of all shapes of `grid.blocks`, alone and both ways at once, by both packers
/// in turns. The longer time of the two ranks counts. Call it on one rank of the pair, and
/// serve_block_messages() on the other rank.
///
/// Each shape is measured in the same blocks again and again, and in blocks that each call finds
/// elsewhere, out of the caches. The times in which packing gains less count.
dtype::BlockTraffic measure_block_messages(MPI_Comm comm, int partner, const Grid& grid,
                                           const Effort& effort);

/// Answers until the partner has measured everything.
void serve_block_messages(MPI_Comm comm, int partner, const Grid& grid);

}  // namespace halocline::comm::detail
