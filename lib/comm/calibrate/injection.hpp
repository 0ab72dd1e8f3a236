// SPDX-License-Identifier: BSD-3-Clause
// Measures how fast bytes leave a node: R_N of the max-rate model [GOS16].
//
// Best peer: [GOS16] fits R_N to ping-pongs of 1 to all ranks of a node. Here all ranks send and
// receive at once, as in an exchange, and the rate is read off directly.
#pragma once

#include <mpi.h>

#include "comm/calibrate/local_times.hpp"

namespace halocline::comm::detail {

/// Is the size of a message of measure_injection(), in bytes.
inline constexpr std::int64_t kInjectionBytes = std::int64_t{4} << 20;

/// Returns the bytes per second that leave a node, one way, on rank 0; 0 on other ranks. Each rank
/// sends to its partner on the other node while it receives from its partner. Rank 0 decides by
/// `effort` how often. Collective over `comm`.
/// \param comm holds the ranks of both nodes
/// \param partner rank of the partner, whose own partner is this rank
/// \param sent, received memory of kInjectionBytes each
double measure_injection(MPI_Comm comm, int partner, const TouchedMemory& sent,
                         const TouchedMemory& received, const Effort& effort);

}  // namespace halocline::comm::detail
