// SPDX-License-Identifier: BSD-3-Clause
// What an exchange consists of.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace halocline::comm {

/// One message out to and one message in from the same partner, described by the user's own
/// datatypes.
///
/// A partner may occur in many jobs. What one rank sends with `send_tag` t, the partner receives
/// with the job whose `receive_tag` for that rank is t; tags are unique per partner, round and
/// direction of travel. The jobs of a round begin when this rank is done with those of the round
/// before, and may send what these have received; both sides of a message name the same round. A
/// job that only sends has receive_count 0, and the other way round. Buffers and types belong to
/// the user; buffers must live as long as the plan, types only until the plan is built, and they
/// need not be committed.
struct ExchangeJob {
  /// Rank in the plan's communicator, also the rank itself. MPI_PROC_NULL: the job is skipped.
  int partner = MPI_PROC_NULL;
  int round = 0;  ///< 0 or more, of few

  const void* send_buffer = nullptr;
  std::int64_t send_count = 0;
  MPI_Datatype send_type = MPI_BYTE;
  int send_tag = 0;

  void* receive_buffer = nullptr;
  std::int64_t receive_count = 0;
  MPI_Datatype receive_type = MPI_BYTE;
  int receive_tag = 0;
};

}  // namespace halocline::comm
