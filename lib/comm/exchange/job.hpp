// SPDX-License-Identifier: BSD-3-Clause
// Describes the jobs of an exchange.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace halocline::comm {

/// Describes a region to send to a partner and a region to receive from the same partner, by the
/// user's own datatypes.
///
/// A partner may occur in many jobs. A region sent with `send_tag` t arrives in the partner's job
/// with `receive_tag` t for this rank. Tags are unique per partner, round and role.
/// Both sides of a region name the same round. MPI may carry several regions in one message.
///
/// The jobs of a round begin after this rank has completed the jobs of the round before. They may
/// send what earlier rounds received. A job that only sends has receive_count 0. A job that only
/// receives has send_count 0.
///
/// Buffers and types belong to the user. Buffers must live as long as the plan. Types must live
/// until the plan is built, and need not be committed.
struct ExchangeJob {
  /// Names the partner's rank in the plan's communicator. It may be the rank itself. MPI_PROC_NULL:
  /// the job is skipped.
  int partner = MPI_PROC_NULL;
  int round = 0;  ///< 0 or more; keep the largest number small

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
