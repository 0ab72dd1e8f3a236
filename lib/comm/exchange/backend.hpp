// SPDX-License-Identifier: BSD-3-Clause
// Between builder.cpp and the methods; not for other users.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/device/transport.hpp"
#include "comm/exchange/exchange_plan.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/node/node_hierarchy.hpp"

namespace halocline::comm::detail {

/// One side of a job: `count` instances of `type` at `buffer`, `bytes` of data that go to or come
/// from `partner` in `round`, in the partner's message number `message`.
struct Piece {
  int partner;
  int round;
  int message;
  int tag;
  void* buffer;  // not written to on the sending side
  std::int64_t count;
  MPI_Datatype type;
  std::int64_t bytes;
};

/// All pieces of one direction of travel, ordered by (partner, round, message, tag): the order on
/// the wire, the same on both sides.
using Pieces = std::vector<Piece>;

/// Whether two pieces of one direction of travel are in one message.
inline bool same_message(const Piece& a, const Piece& b) {
  return a.partner == b.partner && a.round == b.round && a.message == b.message;
}

/// The partners of some pieces, each once, in order.
std::vector<int> partners_of(const Pieces& pieces);

/// Whether our plans pack and self traffic stays out of MPI, or MPI_Pack packs and all of it goes
/// through MPI.
enum class Packing { ours, vendor };

/// Among all ranks, or along the edges of a graph, which is the communicator's topology then.
enum class Collective { alltoall, neighbor };

/// Whether a message leaves as one, or in partitions as they are packed (MPI 4).
enum class Messages { whole, partitioned };

/// Of the begins of messages in their buffer, so that the widest words can be used (errata B.5).
inline constexpr std::int64_t kMessageAlignment = 16;

/// In what units messages are counted, the same on all ranks, and the largest count or
/// displacement.
struct CountUnits {
  std::int64_t bytes;
  std::int64_t limit;
};

/// How a backend moves the pieces of one round. The communicator is the plan's own.
struct Setting {
  std::shared_ptr<const Communicator> comm;
  const Pieces& sends;
  const Pieces& receives;
};

class TypePlans;

/// The transfer of a plan: the method's, or the one that the model prefers, of those that are
/// possible on all ranks. Throws ConfigError on all of them if the method's is not. Collective.
dtype::Transfer choose_transfer(const Communicator& comm, const Method& method, const Pieces& sends,
                                const Pieces& receives, const ExchangePlan::Options& options,
                                dtype::ResourceCache* resources, const NodeHierarchy& nodes);

/// How long an exchange takes by a model, for this rank: `sends` through MPI by `transfer`, and
/// `copies` from layout to layout, by the device if `copies_on_device`; nullopt if something that
/// it needs was not measured. Local.
std::optional<double> predict(const dtype::SystemModel& model, const NodeHierarchy& nodes,
                              const Pieces& sends, dtype::Transfer transfer, const Pieces& copies,
                              bool copies_on_device);

/// What copies between the buffers of all ranks: the device where it alone can address them, the
/// host where it can; none where both would have to. Collective.
enum class Copier { none, host, device };
Copier copier_of(const Communicator& comm, const Pieces& sends, const Pieces& receives,
                 dtype::ResourceCache* resources);

/// Pack into one message per partner, MPI_Alltoallv or MPI_Neighbor_alltoallv, unpack. Types
/// without a plan are packed by MPI even if `packing` is ours. Makes no communication; throws
/// ConfigError for a job that MPI_Pack's int arguments cannot express.
std::unique_ptr<Backend> make_packed_exchange(const Setting& setting, Collective collective,
                                              Packing packing, Transport transport,
                                              const CountUnits& units, TypePlans& plans);

/// Pack, persistent sends and receives, unpack. Makes no communication; errors as above, and
/// ConfigError if this MPI has no partitioned messages.
std::unique_ptr<Backend> make_point_to_point_exchange(const Setting& setting, Messages kind,
                                                      Transport transport, const CountUnits& units,
                                                      TypePlans& plans);

/// Copies from layout to layout, all of ranks on this node: with kernels of the device straight
/// into the partners' receive buffers, or else from the partners' send buffers, in `windows`.
/// Throws ConfigError on all ranks where that is not possible. Collective.
std::unique_ptr<Backend> make_shared_exchange(const Setting& setting, Transport transport,
                                              dtype::Device* device,
                                              const std::vector<const SharedWindow*>& windows,
                                              TypePlans& plans);

/// One derived type per message straight into MPI_Alltoallw, MPI_Neighbor_alltoallw, or persistent
/// sends and receives; `on_device`: the buffers are in memory of a device. Makes no communication.
std::unique_ptr<Backend> make_vendor_collective_exchange(const Setting& setting,
                                                         Collective collective, bool on_device);
std::unique_ptr<Backend> make_vendor_point_to_point_exchange(const Setting& setting,
                                                             bool on_device);

}  // namespace halocline::comm::detail
