// SPDX-License-Identifier: BSD-3-Clause
// Chooses exchange and transfer of a plan, and makes the backends of its rounds.
#include "comm/exchange/builder.hpp"

#include <algorithm>
#include <utility>

#include "comm/device/memory_sharing.hpp"
#include "comm/exchange/packed_messages.hpp"
#include "comm/node/shared_window.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "support/contract.hpp"
#include "support/mpi_check.hpp"

namespace halocline::comm::detail {

namespace {

// Never destroyed: plans of static storage use it while the process ends.
const dtype::HostPacker& kHostPacker = *new const dtype::HostPacker;

void add(std::optional<double>& sum, const std::optional<double>& seconds) {
  if (seconds) sum = sum.value_or(0) + *seconds;
}

PhaseTimes operator+(PhaseTimes a, const PhaseTimes& b) {
  add(a.pack, b.pack);
  add(a.transfer, b.transfer);
  add(a.unpack, b.unpack);
  return a;
}

using Backends = std::vector<std::unique_ptr<Backend>>;

// Runs the backends of the rounds one after the other. begin() starts the first round alone.
// progress() goes on to the next round only if that cannot make it wait.
class InRounds final : public Backend {
 public:
  explicit InRounds(Backends rounds) : rounds_(std::move(rounds)) {}
  void begin() override {
    now_ = 0;
    times_ = {};
    rounds_.front()->begin();
  }
  bool progress() override {
    while (rounds_[now_]->progress()) {
      if (is_last() || !rounds_[now_]->waits_in_progress_alone()) return true;
      begin_next();
    }
    return false;
  }
  PhaseTimes end() override {
    while (!is_last()) begin_next();
    return times_ + rounds_[now_]->end();
  }

 private:
  bool is_last() const { return now_ + 1 == rounds_.size(); }
  void begin_next() {
    times_ = times_ + rounds_[now_]->end();
    rounds_[++now_]->begin();
  }

  Backends rounds_;
  std::size_t now_ = 0;
  PhaseTimes times_;  // of the rounds before
};

// Starts messages, and copies while they are under way.
class CopiesAndMessages final : public Backend {
 public:
  CopiesAndMessages(std::unique_ptr<Backend> copies, std::unique_ptr<Backend> messages)
      : copies_(std::move(copies)), messages_(std::move(messages)) {}
  void begin() override {
    messages_->begin();
    copies_->begin();
  }
  bool progress() override {
    const bool copies = copies_->progress();
    return messages_->progress() && copies;
  }
  PhaseTimes end() override {
    const auto times = copies_->end();
    return times + messages_->end();
  }

 private:
  std::unique_ptr<Backend> copies_, messages_;
};

// Makes the backends of a plan. The constructor and make() are collective.
class Builder {
 public:
  Builder(std::shared_ptr<const Communicator> comm, const Method& method,
          const ExchangePlan::Options& options, const NodeHierarchy& nodes,
          const SendsAndReceives& all)
      : comm_(std::move(comm)),
        method_(method),
        chosen_(method.exchange),
        options_(options),
        nodes_(nodes),
        units_(agree_on_units(*comm_, all, options.mpi_count_limit)),
        resources_(options.resources) {
    collectively(comm_->get(), [&] {
      if (resources_ == nullptr && dtype::current_device() != nullptr)
        resources_ = &dtype::current_resources();
    });
    if (chosen_ == Exchange::automatic) choose_exchange(all);
    if (chosen_ == Exchange::shared)
      choose_for_shared(all);
    else
      transfer_ =
          choose_transfer(*comm_, method, all.sends, all.receives, options, resources_, nodes);
    predicted_ = predict(all);
  }

  dtype::Transfer transfer() const { return transfer_; }
  Exchange chosen() const { return chosen_; }
  std::optional<double> predicted() const { return predicted_; }
  const std::vector<std::string>& packed_by_mpi() const { return plans_.reasons(); }

  // Returns the pieces with long messages in chunks if p2p sends them from the host's memory. Then
  // one chunk travels while the next is packed. Local.
  SendsAndReceives divided(const SendsAndReceives& all) const {
    const bool divides = options_.chunk_bytes > 0 && transfer_ == dtype::Transfer::host &&
                         (chosen_ == Exchange::p2p || chosen_ == Exchange::shared);
    if (!divides) return all;
    const auto is_sent = [&](const Piece& piece) {
      return chosen_ == Exchange::p2p || !is_near(piece);
    };
    return {in_chunks(all.sends, is_sent, options_.chunk_bytes),
            in_chunks(all.receives, is_sent, options_.chunk_bytes)};
  }

  std::unique_ptr<Backend> make(const SendsAndReceives& sides) {
    switch (chosen_) {
      case Exchange::alltoallv:
        return local([&] { return packed(sides, Collective::alltoall, Packing::ours); });
      case Exchange::neighbor:
        return with_graph(without_own(sides),
                          [&] { return packed(sides, Collective::neighbor, Packing::ours); });
      case Exchange::p2p:
        return p2p(sides, Sending::whole);
      case Exchange::partitioned:
        return p2p(sides, Sending::partitioned);
      case Exchange::shared:
        return shared(sides);
      case Exchange::vendor_pack:
        return local([&] { return packed(sides, Collective::alltoall, Packing::vendor); });
      case Exchange::vendor_alltoallw:
        return local([&] {
          return make_vendor_collective_exchange(context(sides), Collective::alltoall, on_device());
        });
      case Exchange::vendor_neighbor:
        return with_graph(sides, [&] {
          return make_vendor_collective_exchange(context(sides), Collective::neighbor, on_device());
        });
      case Exchange::vendor_p2p:
      case Exchange::automatic:
        break;
    }
    HALOCLINE_EXPECT(chosen_ == Exchange::vendor_p2p);  // choose_exchange() resolves `automatic`
    return local([&] { return make_vendor_point_to_point_exchange(context(sides), on_device()); });
  }

 private:
  bool on_device() const { return transfer_ == dtype::Transfer::device; }
  ExchangeContext context(const SendsAndReceives& sides) const {
    return {comm_, sides.sends, sides.receives};
  }
  Transport transport(dtype::Transfer transfer) const {
    return {transfer, options_.packer != nullptr ? *options_.packer : kHostPacker, resources_};
  }

  // Runs `make`, which makes no communication and may fail on one rank alone. Then all ranks throw.
  template <class Make>
  std::unique_ptr<Backend> local(Make make) {
    std::unique_ptr<Backend> out;
    collectively(comm_->get(), [&] { out = make(); });
    return out;
  }

  // Runs `make` with a communicator whose graph topology has the edges of these pieces.
  template <class Make>
  std::unique_ptr<Backend> with_graph(const SendsAndReceives& edges, Make make) {
    const auto plain = std::exchange(
        comm_, std::make_shared<const Communicator>(comm_->get(), partners_of(edges.receives),
                                                    partners_of(edges.sends)));
    auto out = local(make);
    comm_ = plain;
    return out;
  }

  SendsAndReceives without_own(const SendsAndReceives& sides) const {
    return filter(sides, [&](const Piece& piece) { return piece.partner != comm_->rank(); });
  }

  std::unique_ptr<Backend> packed(const SendsAndReceives& sides, Collective collective,
                                  Packing packing) {
    return make_packed_exchange(context(sides), collective, packing, transport(transfer_), units_,
                                plans_);
  }

  std::unique_ptr<Backend> p2p(const SendsAndReceives& sides, Sending sending) {
    return local([&] {
      return make_point_to_point_exchange(context(sides), sending, transport(transfer_), units_,
                                          plans_);
    });
  }

  bool is_near(const Piece& piece) const { return nodes_.same_node(piece.partner); }

  // Tells if some rank has a partner on its node, and all such partners can share memory: their
  // types have plans, and their buffers are in such memory. The same on all ranks.
  bool can_share(const SendsAndReceives& all) {
    const auto local = filter(all, [&](const Piece& piece) { return is_near(piece); });
    const auto near = without_own(local);
    int any = near.sends.empty() && near.receives.empty() ? 0 : 1;
    HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, comm_->get()));
    if (any == 0) return false;
    const auto copier = copier_of(*comm_, local.sends, local.receives, resources_);
    const bool on_device = copier == Copier::device;
    if (copier == Copier::none) return false;
    if (on_device && !probe_memory_sharing(resources_->device(), comm_->get(), &nodes_).possible)
      return false;
    const auto is_planned = [&](const Piece& piece) { return plans_.find(piece.type) != nullptr; };
    const auto in_window = [&](const Piece& piece) {
      const auto span = span_of(piece, *plans_.find(piece.type));
      return std::any_of(options_.windows.begin(), options_.windows.end(), [&](const auto* window) {
        const auto offset = window->offset_of(span.first);
        return offset && span.bytes <= window->bytes() - *offset;
      });
    };
    int yes = 0;
    collectively(comm_->get(), [&] {
      yes = std::ranges::all_of(near.sends, is_planned) &&
                    std::ranges::all_of(near.receives, is_planned) &&
                    (on_device || std::ranges::all_of(near.sends, in_window))
                ? 1
                : 0;
    });
    HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &yes, 1, MPI_INT, MPI_MIN, comm_->get()));
    return yes != 0;
  }

  // Chooses one copy where it is possible, unless the model predicts that messages are faster.
  void choose_exchange(const SendsAndReceives& all) {
    chosen_ = Exchange::p2p;
    if (!can_share(all)) return;
    transfer_ =
        choose_transfer(*comm_, method_, all.sends, all.receives, options_, resources_, nodes_);
    const auto messages = predict(all);
    chosen_ = Exchange::shared;
    choose_for_shared(all);
    const auto copies = predict(all);
    if (messages && copies && *messages < *copies) chosen_ = Exchange::p2p;
  }

  // Returns the model's prediction for the chosen exchange, the largest over the ranks. Collective.
  std::optional<double> predict(const SendsAndReceives& all) const {
    constexpr double kUnknown = -1;
    double seconds = kUnknown;
    if (options_.model != nullptr && !is_vendor(chosen_)) {
      const bool shared = chosen_ == Exchange::shared;
      const auto is_copied = [&](const Piece& piece) {
        return piece.partner == comm_->rank() || (shared && is_near(piece));
      };
      seconds = detail::predict(*options_.model, nodes_,
                                filter(all, [&](const Piece& p) { return !is_copied(p); }).sends,
                                transfer_, filter(all, is_copied).sends,
                                shared ? copies_on_device_ : transfer_ != dtype::Transfer::host)
                    .value_or(kUnknown);
    }
    double least = seconds;
    HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_DOUBLE, MPI_MIN, comm_->get()));
    HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, comm_->get()));
    if (least == kUnknown) return std::nullopt;
    return seconds;
  }

  // Chooses who copies on the nodes. Only pieces to other nodes need a transfer.
  void choose_for_shared(const SendsAndReceives& all) {
    const auto far = filter(all, [&](const Piece& piece) { return !is_near(piece); });
    const auto near = filter(all, [&](const Piece& piece) { return is_near(piece); });
    const auto copier = copier_of(*comm_, near.sends, near.receives, resources_);
    if (copier == Copier::none)
      throw ConfigError(
          "method shared is not possible (some buffers of a node are in memory that the host "
          "cannot address, others are not in a device's): use another method, such as p2p");
    copies_on_device_ = copier == Copier::device;
    int has_far = far.sends.empty() && far.receives.empty() ? 0 : 1;
    HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &has_far, 1, MPI_INT, MPI_MAX, comm_->get()));
    has_far_ = has_far != 0;
    transfer_ = has_far_ ? choose_transfer(*comm_, method_, far.sends, far.receives, options_,
                                           resources_, nodes_)
                : copies_on_device_ ? dtype::Transfer::device
                                    : dtype::Transfer::host;
  }

  std::unique_ptr<Backend> shared(const SendsAndReceives& sides) {
    const auto near = filter(sides, [&](const Piece& piece) { return is_near(piece); });
    auto copies = make_shared_exchange(
        context(near),
        transport(copies_on_device_ ? dtype::Transfer::device : dtype::Transfer::host),
        copies_on_device_ ? &resources_->device() : nullptr, options_.windows, plans_);
    if (!has_far_) return copies;
    return std::make_unique<CopiesAndMessages>(
        std::move(copies),
        p2p(filter(sides, [&](const Piece& p) { return !is_near(p); }), Sending::whole));
  }

  std::shared_ptr<const Communicator> comm_;
  const Method method_;
  Exchange chosen_;
  const ExchangePlan::Options& options_;
  const NodeHierarchy& nodes_;
  const CountUnits units_;
  dtype::ResourceCache* resources_;
  dtype::Transfer transfer_ = dtype::Transfer::host;
  std::optional<double> predicted_;
  TypePlans plans_;
  // Only used by Exchange::shared:
  bool has_far_ = false;  // true if some rank has pieces to other nodes
  bool copies_on_device_ = false;
};

}  // namespace

BuildResult build(std::shared_ptr<const Communicator> comm, const Method& method,
                  const SendsAndReceives& all, const ExchangePlan::Options& options,
                  const NodeHierarchy& nodes) {
  const int n = count_rounds(*comm, all);
  Builder builder(std::move(comm), method, options, nodes, all);
  const auto messages = builder.divided(all);
  Backends rounds;
  for (int round = 0; round < n; ++round)
    rounds.push_back(
        builder.make(filter(messages, [&](const Piece& piece) { return piece.round == round; })));
  return {
      .backend = n == 1 ? std::move(rounds.front()) : std::make_unique<InRounds>(std::move(rounds)),
      .traffic = count_traffic(messages.sends, nodes),
      .chosen = builder.chosen(),
      .transfer = builder.transfer(),
      .predicted_seconds = builder.predicted(),
      .packed_by_mpi = builder.packed_by_mpi()};
}

}  // namespace halocline::comm::detail
