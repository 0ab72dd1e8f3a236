// SPDX-License-Identifier: BSD-3-Clause
// Gives the user's derived types straight to MPI (methods vendor-alltoallw, vendor-neighbor and
// vendor-p2p).
#include <algorithm>
#include <span>

#include "comm/exchange/backend.hpp"
#include "comm/mpi/persistent_requests.hpp"
#include "dtype/datatype.hpp"
#include "support/mpi_check.hpp"
#include "support/narrow.hpp"
#include "support/region.hpp"

namespace halocline::comm::detail {

namespace {

/// Describes a message by a struct type of all its pieces, at their distances from a base.
struct TypedMessage {
  int partner;
  int tag;  ///< number among the messages to this partner, or from it
  dtype::Datatype type;
};

/// Holds the messages that a rank sends, or those that it receives.
struct TypedMessages {
  void* base = MPI_BOTTOM;
  std::vector<TypedMessage> messages;

  // MPI looks at the buffer argument to find out if it is memory of a device. MPI_BOTTOM hides
  // that.
  TypedMessages(const Pieces& pieces, bool on_device)
      : base(on_device && !pieces.empty() ? pieces.front().buffer : MPI_BOTTOM) {
    for (auto first = pieces.begin(); first != pieces.end();) {
      const auto last = std::find_if(first, pieces.end(),
                                     [&](const Piece& p) { return !same_message(p, *first); });
      const bool follows = !messages.empty() && messages.back().partner == first->partner;
      messages.push_back(
          {first->partner, follows ? messages.back().tag + 1 : 0, combine(std::span(first, last))});
      first = last;
    }
  }

 private:
  dtype::Datatype combine(std::span<const Piece> pieces) const {
    MPI_Aint begin = 0;
    HALOCLINE_MPI(MPI_Get_address(base, &begin));
    std::vector<int> counts;
    std::vector<MPI_Aint> addresses;
    std::vector<MPI_Datatype> types;
    for (const auto& piece : pieces) {
      counts.push_back(checked_int(piece.count, "count of a job"));
      auto& address = addresses.emplace_back();
      HALOCLINE_MPI(MPI_Get_address(piece.buffer, &address));
      address = MPI_Aint_diff(address, begin);
      types.push_back(piece.type);
    }
    MPI_Datatype combined = MPI_DATATYPE_NULL;
    HALOCLINE_MPI(MPI_Type_create_struct(checked_int(std::ssize(counts), "number of jobs"),
                                         counts.data(), addresses.data(), types.data(), &combined));
    dtype::Datatype out(combined);
    HALOCLINE_MPI(MPI_Type_commit(&combined));
    return out;
  }
};

/// Holds the arguments of the collectives: by rank, or by neighbour.
template <class Displacement>
struct Arguments {
  std::vector<MPI_Datatype> types;
  std::vector<int> counts;
  std::vector<Displacement> displacements;

  Arguments(const TypedMessages& side, Collective collective, int ranks) {
    const bool by_rank = collective == Collective::alltoall;
    const auto size = by_rank ? static_cast<std::size_t>(ranks) : side.messages.size();
    types.assign(size, MPI_BYTE);
    counts.assign(size, 0);
    displacements.assign(size, 0);
    for (std::size_t i = 0; i < side.messages.size(); ++i) {
      const auto& message = side.messages[i];
      const auto at = by_rank ? static_cast<std::size_t>(message.partner) : i;
      types[at] = message.type.get();
      counts[at] = 1;
    }
  }
};

/// Calls MPI_Alltoallw or MPI_Neighbor_alltoallw. They differ in the type of displacements.
template <class Displacement, auto kCall>
class CollectiveExchange final : public Backend {
 public:
  CollectiveExchange(const ExchangeContext& context, Collective collective, bool on_device)
      : comm_(context.comm),
        out_(context.sends, on_device),
        in_(context.receives, on_device),
        out_arguments_(out_, collective, comm_->size()),
        in_arguments_(in_, collective, comm_->size()) {}

  void begin() override {
    const ProfileRegion region("halocline: transfer");
    const double start = MPI_Wtime();
    HALOCLINE_MPI(kCall(out_.base, out_arguments_.counts.data(),
                        out_arguments_.displacements.data(), out_arguments_.types.data(), in_.base,
                        in_arguments_.counts.data(), in_arguments_.displacements.data(),
                        in_arguments_.types.data(), comm_->get()));
    transfer_ = MPI_Wtime() - start;
  }

  PhaseTimes end() override { return {.pack = {}, .transfer = transfer_, .unpack = {}}; }

 private:
  std::shared_ptr<const Communicator> comm_;
  TypedMessages out_, in_;
  Arguments<Displacement> out_arguments_, in_arguments_;
  double transfer_ = 0;
};

/// Uses persistent sends and receives.
class TypedPointToPointExchange final : public Backend {
 public:
  TypedPointToPointExchange(const ExchangeContext& context, bool on_device)
      : comm_(context.comm), out_(context.sends, on_device), in_(context.receives, on_device) {
    for (const auto& m : in_.messages)
      requests_.add(Role::receiver, in_.base, 1, m.type.get(), m.partner, m.tag, comm_->get());
    for (const auto& m : out_.messages)
      requests_.add(Role::sender, out_.base, 1, m.type.get(), m.partner, m.tag, comm_->get());
  }

  void begin() override {
    const ProfileRegion region("halocline: transfer");
    const double start = MPI_Wtime();
    requests_.start_all();
    transfer_ = MPI_Wtime() - start;
  }

  bool progress() override { return requests_.test_all(); }

  bool waits_in_progress_alone() const override { return true; }

  PhaseTimes end() override {
    const ProfileRegion region("halocline: transfer");
    const double start = MPI_Wtime();
    requests_.wait_all();
    return {.pack = {}, .transfer = transfer_ + MPI_Wtime() - start, .unpack = {}};
  }

 private:
  std::shared_ptr<const Communicator> comm_;
  TypedMessages out_, in_;
  PersistentRequests requests_;
  double transfer_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_vendor_collective_exchange(const ExchangeContext& context,
                                                         Collective collective, bool on_device) {
  if (collective == Collective::alltoall)
    return std::make_unique<CollectiveExchange<int, MPI_Alltoallw>>(context, collective, on_device);
  return std::make_unique<CollectiveExchange<MPI_Aint, MPI_Neighbor_alltoallw>>(context, collective,
                                                                                on_device);
}

std::unique_ptr<Backend> make_vendor_point_to_point_exchange(const ExchangeContext& context,
                                                             bool on_device) {
  return std::make_unique<TypedPointToPointExchange>(context, on_device);
}

}  // namespace halocline::comm::detail
