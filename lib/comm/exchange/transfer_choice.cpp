// SPDX-License-Identifier: BSD-3-Clause
// Chooses the transfer of an exchange. The buffers of all ranks limit the choice; the method or the
// model decides.
#include <algorithm>
#include <map>

#include "comm/device/gpu_awareness.hpp"
#include "comm/exchange/backend.hpp"
#include "comm/messages/planned_buffer.hpp"
#include "support/mpi_check.hpp"

namespace halocline::comm::detail {

namespace {

using dtype::Transfer;
using dtype::TransferSet;

// Holds the transfers that are possible for this rank's buffers, and why the rest is not.
struct Possible {
  TransferSet transfers;
  std::string why_not;
};

// Returns the lowest byte of a piece's data. The buffer argument may point elsewhere, even be
// MPI_BOTTOM.
const void* first_byte(const Piece& piece) {
  MPI_Count lb = 0, extent = 0;
  HALOCLINE_MPI(MPI_Type_get_true_extent_x(piece.type, &lb, &extent));
  return byte_at(piece.buffer, lb);
}

// Says in what memory the buffers of this rank are.
struct BufferKinds {
  bool host = true;       // all in memory that the host can address
  bool kernels = true;    // all in memory that the device can address
  bool on_device = true;  // all in memory of the device alone
};

BufferKinds find_buffers(const Pieces& sends, const Pieces& receives,
                         dtype::ResourceCache* resources) {
  BufferKinds out;
  for (const auto* pieces : {&sends, &receives})
    for (const auto& piece : *pieces) {
      const auto kind = resources == nullptr ? dtype::MemoryKind::host
                                             : resources->device().kind_of(first_byte(piece));
      out.host = out.host && host_can_address(kind);
      out.kernels = out.kernels && kind != dtype::MemoryKind::host;
      out.on_device = out.on_device && kind == dtype::MemoryKind::device;
    }
  return out;
}

Possible possible_here(const Pieces& sends, const Pieces& receives,
                       const ExchangePlan::Options& options, dtype::ResourceCache* resources) {
  if (resources == nullptr)
    return {dtype::possible_transfers({.host_access = true}), dtype::why_no_device()};
  const auto buffers = find_buffers(sends, receives, resources);
  Possible out;
  bool aware = false;
  if (!buffers.kernels) {
    out.why_not = "a buffer is in memory of the host that the device cannot address";
  } else if (options.gpu_aware_mpi) {
    aware = *options.gpu_aware_mpi;
    out.why_not = "this MPI does not take device memory";
  } else {
    const auto awareness = probe_gpu_awareness(resources->device());
    aware = awareness.aware;
    out.why_not = "this MPI does not take device memory; " + awareness.source;
  }
  out.transfers = dtype::possible_transfers(
      {.device_messages = aware, .mapped_memory = buffers.kernels, .host_access = buffers.host});
  if (!buffers.host && aware) out.why_not = "a buffer is in memory that the host cannot address";
  return out;
}

// Returns the block shape of a piece's type. Without a plan the shape is unknown, and {1, 1} stands
// for it.
dtype::BlockShape shape_of(const Piece& piece) {
  const auto plan = dtype::make_plan(piece.type);
  const auto* known = std::get_if<dtype::PackPlan>(&plan);
  return known == nullptr ? dtype::BlockShape{1, 1} : dtype::shape_of(*known);
}

// Returns a message for each partner, with a part for each type, since fields share their types.
std::vector<dtype::Message> messages_of(const NodeHierarchy& nodes, const Pieces& sends) {
  std::vector<dtype::Message> out;
  std::map<MPI_Datatype, dtype::BlockShape> shapes;
  std::map<MPI_Datatype, std::size_t> parts;  // indices in `out`, one partner
  int partner = MPI_PROC_NULL;
  for (const auto& piece : sends) {
    const bool continues = piece.partner == partner;
    if (!continues) parts.clear();
    partner = piece.partner;
    const auto [part, is_new] = parts.emplace(piece.type, out.size());
    if (!is_new) {
      out[part->second].bytes += piece.bytes;
      continue;
    }
    auto shape = shapes.find(piece.type);
    if (shape == shapes.end()) shape = shapes.emplace(piece.type, shape_of(piece)).first;
    const auto reach = partner == nodes.rank()    ? dtype::Reach::self
                       : nodes.same_node(partner) ? dtype::Reach::on_node
                                                  : dtype::Reach::off_node;
    out.push_back({piece.bytes, shape->second, shape->second, reach, continues});
  }
  return out;
}

std::string list(TransferSet transfers) {
  std::string out;
  for (const auto transfer : dtype::all_transfers())
    if (transfers[static_cast<std::size_t>(transfer)])
      out += (out.empty() ? "" : ", ") + std::string(dtype::name(transfer));
  return out;
}

}  // namespace

Transfer choose_transfer(const Communicator& comm, const Method& method, const Pieces& sends,
                         const Pieces& receives, const ExchangePlan::Options& options,
                         dtype::ResourceCache* resources, const NodeHierarchy& nodes) {
  Possible here;
  collectively(comm.get(), [&] { here = possible_here(sends, receives, options, resources); });
  auto bits = here.transfers.to_ulong();
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &bits, 1, MPI_UNSIGNED_LONG, MPI_BAND, comm.get()));
  const TransferSet possible(bits);
  const auto is_possible = [](const TransferSet& set, Transfer transfer) {
    return set.test(static_cast<std::size_t>(transfer));
  };
  auto wanted = method.transfer;
  if (is_vendor(method.exchange))
    wanted = is_possible(possible, Transfer::host) ? Transfer::host : Transfer::device;
  collectively(comm.get(), [&] {
    if (!wanted && possible.none())
      throw ConfigError("no transfer is possible for all ranks (" + here.why_not +
                        "): keep the fields of all ranks in one kind of memory");
    if (!wanted || is_possible(possible, *wanted) || is_possible(here.transfers, *wanted)) return;
    throw ConfigError("method " + name(method) + " is not possible (" + here.why_not + "): " +
                      (is_vendor(method.exchange)
                           ? "use an MPI that takes device memory, or leave the method out"
                       : possible.none() ? "keep the fields in memory that both can address"
                                         : "these transfers are: " + list(possible)));
  });
  if (wanted) return *wanted;
  if (possible.count() == 1 && is_possible(possible, Transfer::host)) return Transfer::host;

  // Rank 0 chooses for all ranks, since the messages of a halo are alike.
  auto chosen = Transfer::host;
  collectively(comm.get(), [&] {
    const auto messages = messages_of(nodes, sends);
    chosen = dtype::select_transfer(options.model, messages, possible).transfer;
  });
  static_assert(sizeof(Transfer) == 1);
  HALOCLINE_MPI(MPI_Bcast(&chosen, 1, MPI_BYTE, 0, comm.get()));
  return chosen;
}

std::optional<double> predict(const dtype::SystemModel& model, const NodeHierarchy& nodes,
                              const Pieces& sends, Transfer transfer, const Pieces& copies,
                              bool copies_on_device) {
  const auto messages = messages_of(nodes, sends);
  dtype::PredictedSeconds out;
  if (!messages.empty()) out = phase_seconds(model, messages, transfer).total();
  return (out + copy_seconds(model, messages_of(nodes, copies), copies_on_device)).seconds();
}

Copier copier_of(const Communicator& comm, const Pieces& sends, const Pieces& receives,
                 dtype::ResourceCache* resources) {
  constexpr int kDevice = 1, kHost = 2;
  int can = 0;
  collectively(comm.get(), [&] {
    const auto buffers = find_buffers(sends, receives, resources);
    can = (resources != nullptr && buffers.on_device ? kDevice : 0) | (buffers.host ? kHost : 0);
  });
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &can, 1, MPI_INT, MPI_BAND, comm.get()));
  return (can & kDevice) != 0 ? Copier::device : (can & kHost) != 0 ? Copier::host : Copier::none;
}

}  // namespace halocline::comm::detail
