// SPDX-License-Identifier: BSD-3-Clause
// Messages between two ranks, one way and back: [PEA21 section 6.3], T_cpu-cpu and T_gpu-gpu.
//
// Best peer: [PEA21] has one blocking message under way; here as many as a halo exchange has.
#pragma once

#include <mpi.h>

#include "comm/calibrate/grid.hpp"
#include "comm/calibrate/local_times.hpp"
#include "dtype/select/time_table.hpp"

namespace halocline::comm::detail {

/// Half a round trip: all messages there, then as many back, each way at once and nonblocking; of
/// the two ranks' times the longer. Called on one rank of the pair, serve_ping_pong() on the
/// other. Both memories hold grid.message_bytes.back() bytes.
dtype::MessageTimes measure_ping_pong(MPI_Comm comm, int partner, const TouchedMemory& sent,
                                      const TouchedMemory& received, const Grid& grid,
                                      const Effort& effort);

/// Answers until the partner has measured everything.
void serve_ping_pong(MPI_Comm comm, int partner, const TouchedMemory& sent,
                     const TouchedMemory& received);

}  // namespace halocline::comm::detail
