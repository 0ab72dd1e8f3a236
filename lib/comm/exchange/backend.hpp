// SPDX-License-Identifier: BSD-3-Clause
// Declares what the methods of an exchange are made from, and who makes them: builder.cpp chooses
// a method and calls its make_ function. Class Backend is in exchange_plan.hpp. Internal to
// lib/comm/exchange.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/exchange/exchange_plan.hpp"
#include "comm/messages/transport.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/node/node_hierarchy.hpp"

namespace halocline::comm::detail {

/// Describes one side of a job: `count` instances of `type` at `buffer`. They hold `bytes` bytes of
/// data. The data go to or come from `partner` in round `round`, in message number `message` of
/// that partner. Once messages are cut into chunks, the numbers go on over all partners.
///
/// The job's tag orders the pieces of a message, and pairs both sides. MPI does not get it: the tag
/// of an MPI message is its number among the messages to the partner.
struct Piece {
  int partner;
  int round;
  int message;
  int tag;
  void* buffer;  // only read on the sending side
  std::int64_t count;
  MPI_Datatype type;
  std::int64_t bytes;
};

/// Holds all pieces that a rank sends, or all that it receives, ordered by (partner, round,
/// message, tag). This wire order is the same on both sides.
using Pieces = std::vector<Piece>;

/// Tells if two pieces that a rank sends, or two that it receives, are in one message.
inline bool same_message(const Piece& a, const Piece& b) {
  return a.partner == b.partner && a.round == b.round && a.message == b.message;
}

/// Returns the partners of `pieces`, each once, in wire order.
std::vector<int> partners_of(const Pieces& pieces);

/// Says who packs. `ours`: our pack plans, and data from a rank to itself stay out of MPI.
/// `vendor`: MPI_Pack, and all data go through MPI.
enum class Packing { ours, vendor };

/// Says which ranks a collective call covers: all ranks, or the neighbours in the communicator's
/// graph topology.
enum class Collective { alltoall, neighbor };

/// Says if a message is sent as a whole, or in partitions as they are packed (MPI 4).
enum class Sending { whole, partitioned };

/// Is the alignment of messages in their buffer, in bytes. It lets the packers use the widest words
/// (errata B.5).
inline constexpr std::int64_t kMessageAlignment = 16;

/// Holds the unit in which messages are counted, in bytes, and the largest count or displacement of
/// an MPI call. The unit is the same on all ranks.
///
/// A unit is 2^k bytes, so that MPI's int counts suffice. It is 1 unless a rank moves about 2 GiB.
/// A message ends with a whole unit: the bytes after its data are sent, too.
struct CountUnits {
  std::int64_t bytes;
  std::int64_t limit;
};

/// Holds the input of a backend: the pieces of one round and the plan's own communicator.
struct ExchangeContext {
  std::shared_ptr<const Communicator> comm;
  const Pieces& sends;
  const Pieces& receives;
};

class TypePlans;

/// Chooses the transfer of a plan: the method's transfer, or the one that the model prefers. Only
/// transfers that are possible on all ranks are considered. Throws ConfigError on all ranks if the
/// method's transfer is not possible. Collective.
dtype::Transfer choose_transfer(const Communicator& comm, const Method& method, const Pieces& sends,
                                const Pieces& receives, const ExchangePlan::Options& options,
                                dtype::ResourceCache* resources, const NodeHierarchy& nodes);

/// Predicts the seconds that an exchange takes for this rank by `model`. `sends` go through MPI by
/// `transfer`. `copies` go from layout to layout, by the device if `copies_on_device`. Returns
/// nullopt if a part of the model that is needed was not measured. Local.
std::optional<double> predict(const dtype::SystemModel& model, const NodeHierarchy& nodes,
                              const Pieces& sends, dtype::Transfer transfer, const Pieces& copies,
                              bool copies_on_device);

/// Says who can copy between the buffers of all ranks. `device`: all buffers are in memory that
/// only devices can address. `host`: the host can address all of them. `none`: neither holds.
enum class Copier { none, host, device };
/// Returns who can copy between the buffers of all ranks. Collective.
Copier copier_of(const Communicator& comm, const Pieces& sends, const Pieces& receives,
                 dtype::ResourceCache* resources);

/// Makes a backend that packs one message per partner, calls MPI_Alltoallv or
/// MPI_Neighbor_alltoallv, and unpacks. MPI packs types without a plan, even if `packing` is ours.
/// Makes no communication. Throws ConfigError for a job that MPI_Pack's int arguments cannot
/// express.
std::unique_ptr<Backend> make_packed_exchange(const ExchangeContext& context, Collective collective,
                                              Packing packing, Transport transport,
                                              const CountUnits& units, TypePlans& plans);

/// Makes a backend that packs, uses persistent sends and receives, and unpacks. Makes no
/// communication. Throws ConfigError for a job that MPI_Pack's int arguments cannot express. Throws
/// ConfigError for Sending::partitioned if this MPI has no partitioned messages.
std::unique_ptr<Backend> make_point_to_point_exchange(const ExchangeContext& context,
                                                      Sending sending, Transport transport,
                                                      const CountUnits& units, TypePlans& plans);

/// Makes a backend that copies from layout to layout between ranks of one node. With a `device`,
/// its kernels write straight into the partners' receive buffers. With nullptr, the hosts of two
/// partners each do one half of the copies between them. Send buffers must then be in `windows`. A
/// receive buffer elsewhere is written by its owner. Throws ConfigError on all ranks if such copies
/// are not possible. Collective.
std::unique_ptr<Backend> make_shared_exchange(const ExchangeContext& context, Transport transport,
                                              dtype::Device* device,
                                              const std::vector<const SharedWindow*>& windows,
                                              TypePlans& plans);

/// Makes a backend that gives MPI one derived type per message. The types go to MPI_Alltoallw,
/// MPI_Neighbor_alltoallw, or persistent sends and receives. `on_device`: the buffers are in memory
/// of a device. Makes no communication.
std::unique_ptr<Backend> make_vendor_collective_exchange(const ExchangeContext& context,
                                                         Collective collective, bool on_device);
std::unique_ptr<Backend> make_vendor_point_to_point_exchange(const ExchangeContext& context,
                                                             bool on_device);

}  // namespace halocline::comm::detail
