// SPDX-License-Identifier: BSD-3-Clause
// Measures messages between two ranks, there and back: T_cpu-cpu and T_gpu-gpu of [PEA21 section
// 6.3].
//
// Best peer: [PEA21] has one blocking message under way. Here a halo exchange's number of messages
// is under way.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "comm/calibrate/grid.hpp"
#include "comm/calibrate/local_times.hpp"
#include "dtype/select/time_table.hpp"

namespace halocline::comm::detail {

/// Returns the bytes that the messages of a grid take at each end.
std::int64_t message_memory(const Grid& grid);

/// Measures half round trips: all messages go there at once, then the same number comes back at
/// once, nonblocking. The longer time of the two ranks counts. Call it on one rank of the pair, and
/// serve_ping_pong() on the other rank. `sent` and `received` hold message_memory() bytes each.
dtype::MessageTimes measure_ping_pong(MPI_Comm comm, int partner, const TouchedMemory& sent,
                                      const TouchedMemory& received, const Grid& grid,
                                      const Effort& effort);

/// Answers until the partner has measured everything.
void serve_ping_pong(MPI_Comm comm, int partner, const TouchedMemory& sent,
                     const TouchedMemory& received);

}  // namespace halocline::comm::detail
