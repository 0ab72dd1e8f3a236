// SPDX-License-Identifier: BSD-3-Clause
// How fast bytes leave a node: R_N of the max-rate model [GOS16].
//
// Best peer: [GOS16] fits R_N to ping-pongs of 1 to all ranks of a node; here all ranks send and
// receive at once, as in an exchange, and one number is read off.
#pragma once

#include <mpi.h>

#include "comm/calibrate/local_times.hpp"

namespace halocline::comm::detail {

/// Bytes of a message of measure_injection().
inline constexpr std::int64_t kInjectionBytes = std::int64_t{4} << 20;

/// Bytes per second that leave a node, one way, while each of its ranks sends to its partner on the
/// other node and receives from there. `comm` holds the ranks of both nodes; each rank is its
/// partner's partner, and both memories hold kInjectionBytes. On rank 0, which decides by `effort`
/// how often; 0 elsewhere. Collective over `comm`.
double measure_injection(MPI_Comm comm, int partner, const TouchedMemory& sent,
                         const TouchedMemory& received, const Effort& effort);

}  // namespace halocline::comm::detail
