// SPDX-License-Identifier: BSD-3-Clause
// Messages between two ranks, one way and back: [PEA21 section 6.3], T_cpu-cpu and T_gpu-gpu.
//
// Best peer: [PEA21] has one blocking message under way; here as many as a halo exchange has.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "comm/calibrate/grid.hpp"
#include "comm/calibrate/local_times.hpp"
#include "dtype/select/time_table.hpp"

namespace halocline::comm::detail {

/// How MPI is given the bytes: as one run of memory or as StreamedBytes, of which 2 are the least.
enum class Form { whole, streamed };

/// The memory that messages of a grid are in on either side.
std::int64_t message_memory(const Grid& grid, Form form);

/// Half a round trip: all messages there, then as many back, each way at once and nonblocking; of
/// the two ranks' times the longer. Called on one rank of the pair, serve_ping_pong() on the
/// other. Both memories hold message_memory().
dtype::MessageTimes measure_ping_pong(MPI_Comm comm, int partner, const TouchedMemory& sent,
                                      const TouchedMemory& received, Form form, const Grid& grid,
                                      const Effort& effort);

/// Answers until the partner has measured everything.
void serve_ping_pong(MPI_Comm comm, int partner, const TouchedMemory& sent,
                     const TouchedMemory& received, Form form);

}  // namespace halocline::comm::detail
