// SPDX-License-Identifier: BSD-3-Clause
// Between exchange_plan.cpp and the methods; not for other users.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/device/transport.hpp"
#include "comm/exchange/exchange_plan.hpp"
#include "comm/mpi/communicator.hpp"

namespace halocline::comm::detail {

/// One side of a job: `count` instances of `type` at `buffer`, `bytes` of data that go to or come
/// from `partner`.
struct Piece {
  int partner;
  int tag;
  void* buffer;  // not written to on the sending side
  std::int64_t count;
  MPI_Datatype type;
  std::int64_t bytes;
};

/// All pieces of one direction of travel, ordered by (partner, tag): the order on the wire, the
/// same on both sides.
using Pieces = std::vector<Piece>;

/// Whether our plans pack and self traffic stays out of MPI, or MPI_Pack packs and all of it goes
/// through MPI.
enum class Packing { ours, vendor };

/// Of the begins of messages in their buffer, so that the widest words can be used (errata B.5).
inline constexpr std::int64_t kMessageAlignment = 16;

/// In what units messages are counted, the same on all ranks, and the largest count or
/// displacement.
struct CountUnits {
  std::int64_t bytes;
  std::int64_t limit;
};

/// The transfer of a plan: the method's, or the one that the model prefers, of those that are
/// possible on all ranks. Throws ConfigError on all of them if the method's is not. Collective.
dtype::Transfer choose_transfer(const Communicator& comm, const Method& method, const Pieces& sends,
                                const Pieces& receives, const ExchangePlan::Options& options,
                                dtype::ResourceCache* resources);

/// Pack into one message per partner, MPI_Alltoallv, unpack. Types without a plan are packed by MPI
/// even if `packing` is ours; the reasons are added to `packed_by_mpi`. Makes no communication;
/// throws ConfigError for a job that MPI_Pack's int arguments cannot express.
std::unique_ptr<Backend> make_packed_exchange(std::shared_ptr<const Communicator> comm,
                                              const Pieces& sends, const Pieces& receives,
                                              Packing packing, Transport transport,
                                              const CountUnits& units,
                                              std::vector<std::string>& packed_by_mpi);

/// Copies straight into the partners' receive buffers: all in memory of the device, and of ranks on
/// this node. Throws ConfigError on all ranks where that is not possible. Collective.
std::unique_ptr<Backend> make_shared_exchange(std::shared_ptr<const Communicator> comm,
                                              const Pieces& sends, const Pieces& receives,
                                              Transport transport, dtype::Device& device);

/// One derived type per partner straight into MPI_Alltoallw; `on_device`: the buffers are in memory
/// of a device. Makes no communication.
std::unique_ptr<Backend> make_alltoallw_exchange(std::shared_ptr<const Communicator> comm,
                                                 const Pieces& sends, const Pieces& receives,
                                                 bool on_device);

}  // namespace halocline::comm::detail
