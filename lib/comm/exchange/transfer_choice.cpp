// SPDX-License-Identifier: BSD-3-Clause
// Which transfer an exchange uses: what is possible for its buffers on all ranks, and of that what
// the method or the model says.
#include <algorithm>
#include <set>

#include "comm/device/gpu_awareness.hpp"
#include "comm/exchange/backend.hpp"
#include "dtype/pack/segment.hpp"
#include "dtype/support/mpi_check.hpp"

namespace halocline::comm::detail {

namespace {

using dtype::Transfer;
using dtype::TransferSet;

// Where the data of a piece is: its buffer argument may point elsewhere, MPI_BOTTOM even.
const void* first_byte(const Piece& piece) {
  MPI_Count lb = 0, extent = 0;
  HALOCLINE_MPI(MPI_Type_get_true_extent_x(piece.type, &lb, &extent));
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(piece.buffer) +
                                       static_cast<std::uintptr_t>(lb));
}

// What this rank can do for its buffers, and what stands in the way of the rest.
struct Possible {
  TransferSet transfers;
  std::string why_not;
};

Possible possible_here(const Pieces& sends, const Pieces& receives,
                       const ExchangePlan::Options& options, dtype::ResourceCache* resources) {
  if (resources == nullptr)
    return {dtype::possible_transfers({.host_access = true}), dtype::why_no_device()};
  auto& device = resources->device();
  bool host = true, kernels = true;
  for (const auto* pieces : {&sends, &receives})
    for (const auto& piece : *pieces) {
      const auto kind = device.kind_of(first_byte(piece));
      host = host && host_can_address(kind);
      kernels = kernels && kind != dtype::MemoryKind::host;
    }
  Possible out;
  bool aware = false;
  if (!kernels) {
    out.why_not = "a buffer is in memory of the host that the device cannot address";
  } else if (options.gpu_aware_mpi) {
    aware = *options.gpu_aware_mpi;
    out.why_not = "this MPI does not take device memory";
  } else {
    const auto awareness = probe_gpu_awareness(device);
    aware = awareness.aware;
    out.why_not = "this MPI does not take device memory; " + awareness.source;
  }
  out.transfers = dtype::possible_transfers(
      {.device_messages = aware, .mapped_memory = kernels, .host_access = host});
  if (!host && aware) out.why_not = "a buffer is in memory that the host cannot address";
  return out;
}

// The blocks of a type on average, and how far apart they are.
dtype::BlockShape shape_of(const Piece& piece) {
  const auto plan = dtype::make_plan(piece.type);
  const auto* known = std::get_if<dtype::PackPlan>(&plan);
  if (known == nullptr) return {1, 1};
  dtype::Segment segment(*known, nullptr, 1);
  const auto [bytes, blocks] = segment.measure(segment.bytes());
  const auto block = std::max<std::int64_t>(bytes / blocks, 1);
  return {block, std::max(block, known->bounds().true_extent / blocks)};
}

// A message for each partner, with the shape of its largest piece.
std::vector<dtype::Message> messages_of(int rank, const std::set<int>& near, const Pieces& sends) {
  std::vector<dtype::Message> out;
  for (auto first = sends.begin(); first != sends.end();) {
    const auto last = std::find_if(first, sends.end(),
                                   [&](const Piece& p) { return p.partner != first->partner; });
    std::int64_t bytes = 0;
    for (auto piece = first; piece != last; ++piece) bytes += piece->bytes;
    const auto largest = std::max_element(
        first, last, [](const Piece& a, const Piece& b) { return a.bytes < b.bytes; });
    const auto shape = shape_of(*largest);
    const auto reach = first->partner == rank          ? dtype::Reach::self
                       : near.contains(first->partner) ? dtype::Reach::on_node
                                                       : dtype::Reach::off_node;
    out.push_back({bytes, shape, shape, reach});
    first = last;
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
                         dtype::ResourceCache* resources) {
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

  // One rank's choice is everybody's: the messages of a halo are alike.
  auto chosen = Transfer::host;
  const auto near = ranks_on_node(comm);
  collectively(comm.get(), [&] {
    const auto messages = messages_of(comm.rank(), near, sends);
    chosen = dtype::select_transfer(options.model, messages, possible).transfer;
  });
  static_assert(sizeof(Transfer) == 1);
  HALOCLINE_MPI(MPI_Bcast(&chosen, 1, MPI_BYTE, 0, comm.get()));
  return chosen;
}

}  // namespace halocline::comm::detail
