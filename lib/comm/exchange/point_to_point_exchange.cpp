// SPDX-License-Identifier: BSD-3-Clause
// Packs, uses persistent sends and receives, and unpacks (method p2p). With partitioned messages, a
// message leaves in parts while the rest of it is packed (method partitioned).
//
// Best peer: GHEX unpacks in the order of arrival, too, but packs with an index list per field.
// Here a message is one plan over all fields. It is sent as soon as it is packed, so it travels
// while the next one is packed. Data that stay on the rank are copied while messages are under way.
#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "comm/exchange/backend.hpp"
#include "comm/exchange/packed_messages.hpp"
#include "comm/mpi/persistent_requests.hpp"
#include "support/mpi_check.hpp"
#include "support/region.hpp"

namespace halocline::comm::detail {

namespace {

using Parts = PackedMessages::Parts;

// A device packs all messages by one launch.
Parts parts_for(const Transport& transport, Parts on_host) {
  return transport.transfer() == dtype::Transfer::host ? on_host : Parts::one;
}

// MPI requires partitions of equal lengths.
int partitions_of(const PackedMessages::Message& message) {
  constexpr int kMost = 8;
  return std::gcd(message.count, kMost);
}

class PointToPointExchange final : public Backend {
 public:
  PointToPointExchange(const ExchangeContext& context, Sending sending, Transport transport,
                       const CountUnits& units, TypePlans& plans)
      : comm_(context.comm),
        transport_(std::move(transport)),
        unit_type_(unit_type(units, MPI_BYTE)),
        sending_(sending),
        out_(*comm_, without_own(context.sends, comm_->rank()), Role::sender, Packing::ours,
             transport_,
             parts_for(transport_,
                       sending == Sending::whole ? Parts::each_message : Parts::each_piece),
             units, plans),
        in_(*comm_, without_own(context.receives, comm_->rank()), Role::receiver, Packing::ours,
            transport_, parts_for(transport_, Parts::each_message), units, plans),
        own_(*comm_, context.sends, context.receives, transport_, plans),
        missing_(in_.parts()) {
    for (const auto& m : out_.messages()) add(sends_, Role::sender, out_.wire(m), m);
    for (const auto& m : in_.messages()) add(receives_, Role::receiver, in_.wire(m), m);
  }

  ~PointToPointExchange() override { transport_.settle(); }

  void begin() override {
    for (std::size_t part = 0; part < in_.parts(); ++part)
      missing_[part] = in_.extent(part).last - in_.extent(part).first;
    unpack_time_ = 0;
    send();
    timed([&] {
      own_.start();
      if (own_at_start()) transport_.packer().fence();
    });
  }

  bool own_at_start() const override { return transport_.transfer() == dtype::Transfer::host; }

  bool progress() override {
    unpack(receives_.test_some());
    const bool sent = sends_.test_all();
    return sent && std::all_of(missing_.begin(), missing_.end(), [](auto n) { return n == 0; });
  }

  bool waits_in_progress_alone() const override { return true; }

  PhaseTimes end() override {
    const double start = MPI_Wtime(), earlier = unpack_time_;
    for (;;) {
      const ProfileRegion region("halocline: transfer");
      const auto arrived = receives_.wait_some();
      if (arrived.empty()) break;
      unpack(arrived);
    }
    timed([&] { transport_.packer().fence(); });
    sends_.wait_all();
    times_.unpack = unpack_time_;
    times_.transfer = MPI_Wtime() - start - (unpack_time_ - earlier);
    return times_;
  }

 private:
  void add(PersistentRequests& requests, Role role, std::byte* wire,
           const PackedMessages::Message& m) {
    const int partitions = sending_ == Sending::partitioned ? partitions_of(m) : 0;
    requests.add(role, wire, m.count, unit_type_.get(), m.partner, m.tag, comm_->get(), partitions);
  }

  // Sends the packed messages, or the partitions that this part has filled.
  void send(std::size_t part) {
    const auto& extent = out_.extent(part);
    for (auto m = extent.first; m < extent.last; ++m) {
      const bool whole = out_.last_part_of(m) == part;
      if (sending_ == Sending::whole) {
        sends_.start(m);
        sends_.test_some();  // a message sent before may need MPI to make progress
        continue;
      }
      const auto& message = out_.messages()[m];
      const int partitions = partitions_of(message);
      const auto bytes = message.count / partitions * out_.unit_bytes();
      const int last = whole ? partitions : static_cast<int>(extent.end / bytes);
      for (; ready_ < last; ++ready_) sends_.set_ready(m, ready_);
      if (whole) ready_ = 0;
    }
  }

  void send() {
    const ProfileRegion region("halocline: pack");
    const double start = MPI_Wtime();
    receives_.start_all();
    if (sending_ == Sending::partitioned) sends_.start_all();
    ready_ = 0;
    for (std::size_t part = 0; part < out_.parts(); ++part) {
      out_.start(part);
      transport_.packer().fence();
      send(part);
    }
    times_.pack = MPI_Wtime() - start;
  }

  template <class Work>
  void timed(Work work) {
    const ProfileRegion region("halocline: unpack");
    const double start = MPI_Wtime();
    work();
    unpack_time_ += MPI_Wtime() - start;
  }

  // Unpacks each part as soon as all of its messages have arrived.
  void unpack(std::span<const int> arrived) {
    if (arrived.empty()) return;
    timed([&] {
      for (const int message : arrived) {
        const auto part = in_.last_part_of(static_cast<std::size_t>(message));
        if (--missing_[part] == 0) in_.start(part);
      }
    });
  }

  std::shared_ptr<const Communicator> comm_;
  Transport transport_;
  dtype::Datatype unit_type_;
  Sending sending_;
  PackedMessages out_, in_;
  SelfCopies own_;
  PersistentRequests sends_, receives_;  // by message
  std::vector<std::size_t> missing_;     // messages, by part of in_
  int ready_ = 0;  // count of partitions that are ready, in the message being packed
  PhaseTimes times_;
  double unpack_time_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_point_to_point_exchange(const ExchangeContext& context,
                                                      Sending sending, Transport transport,
                                                      const CountUnits& units, TypePlans& plans) {
  return std::make_unique<PointToPointExchange>(context, sending, std::move(transport), units,
                                                plans);
}

}  // namespace halocline::comm::detail
