// SPDX-License-Identifier: BSD-3-Clause
// Packs, makes one collective call, and unpacks: the methods alltoallv and neighbor by our plans,
// vendor-pack by MPI_Pack.
//
// begin() packs all messages and waits for MPI's collective call, so nothing is under way
// afterwards. end() unpacks. It also copies the rank's own data, which count as unpacking: no
// message could travel meanwhile. PackedMessages lays out each buffer with one part, and its
// start(0) packs or unpacks everything. On a host that is HostPacker, which calls copy_range() in
// dtype/pack/host/copy_range.cpp.
#include <utility>

#include "comm/exchange/backend.hpp"
#include "comm/exchange/packed_messages.hpp"
#include "support/mpi_check.hpp"
#include "support/region.hpp"

namespace halocline::comm::detail {

namespace {

using Parts = PackedMessages::Parts;

// Vendor methods send to the rank itself through MPI, too.
Pieces travelling(const Pieces& pieces, int rank, Packing packing) {
  return packing == Packing::ours ? without_own(pieces, rank) : pieces;
}

Pieces staying(const Pieces& pieces, Packing packing) {
  return packing == Packing::ours ? pieces : Pieces();
}

/// Holds counts and displacements in units, as the collectives take them: by rank, or by neighbour.
struct Counts {
  std::vector<int> counts, displacements;

  Counts(const PackedMessages& messages, Collective collective, int ranks) {
    if (collective == Collective::alltoall) {
      counts.resize(static_cast<std::size_t>(ranks));
      displacements.resize(static_cast<std::size_t>(ranks));
    }
    for (const auto& message : messages.messages()) {
      if (collective == Collective::alltoall) {
        counts[static_cast<std::size_t>(message.partner)] = message.count;
        displacements[static_cast<std::size_t>(message.partner)] = message.displacement;
      } else {
        counts.push_back(message.count);
        displacements.push_back(message.displacement);
      }
    }
  }
};

class PackedExchange final : public Backend {
 public:
  PackedExchange(const ExchangeContext& context, Collective collective, Packing packing,
                 Transport transport, const CountUnits& units, TypePlans& plans)
      : comm_(context.comm),
        call_(collective == Collective::alltoall ? MPI_Alltoallv : MPI_Neighbor_alltoallv),
        transport_(std::move(transport)),
        unit_type_(unit_type(units, packing == Packing::ours ? MPI_BYTE : MPI_PACKED)),
        out_(*comm_, travelling(context.sends, comm_->rank(), packing), Role::sender, packing,
             transport_, Parts::one, units, plans),
        in_(*comm_, travelling(context.receives, comm_->rank(), packing), Role::receiver, packing,
            transport_, Parts::one, units, plans),
        own_(*comm_, staying(context.sends, packing), staying(context.receives, packing),
             transport_, plans),
        out_counts_(out_, collective, comm_->size()),
        in_counts_(in_, collective, comm_->size()) {}

  ~PackedExchange() override { transport_.settle(); }

  void begin() override {
    const double start = MPI_Wtime();
    {
      const ProfileRegion region("halocline: pack");
      out_.start(0);
      transport_.packer().fence();
    }
    const double packed = MPI_Wtime();
    const ProfileRegion region("halocline: transfer");
    HALOCLINE_MPI(call_(out_.wire(), out_counts_.counts.data(), out_counts_.displacements.data(),
                        unit_type_.get(), in_.wire(), in_counts_.counts.data(),
                        in_counts_.displacements.data(), unit_type_.get(), comm_->get()));
    times_.pack = packed - start;
    times_.transfer = MPI_Wtime() - packed;
  }

  PhaseTimes end() override {
    const ProfileRegion region("halocline: unpack");
    const double start = MPI_Wtime();
    in_.start(0);
    own_.start();
    transport_.packer().fence();
    times_.unpack = MPI_Wtime() - start;
    return times_;
  }

 private:
  std::shared_ptr<const Communicator> comm_;
  decltype(&MPI_Alltoallv) call_;
  Transport transport_;
  dtype::Datatype unit_type_;
  PackedMessages out_, in_;
  SelfCopies own_;
  Counts out_counts_, in_counts_;
  PhaseTimes times_;
};

}  // namespace

std::unique_ptr<Backend> make_packed_exchange(const ExchangeContext& context, Collective collective,
                                              Packing packing, Transport transport,
                                              const CountUnits& units, TypePlans& plans) {
  return std::make_unique<PackedExchange>(context, collective, packing, std::move(transport), units,
                                          plans);
}

}  // namespace halocline::comm::detail
