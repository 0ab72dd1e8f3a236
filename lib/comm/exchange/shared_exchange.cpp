// SPDX-License-Identifier: BSD-3-Clause
// Copies from the fields of one rank to the halo of another rank of its node (method shared).
// Nothing is packed, and no bytes go through MPI.
//
// Best peer: Open MPI copies a message of a node once, too. But it walks both types for every
// message, and copies piece by piece through CUDA IPC. Here one plan of both layouts and of all
// partners is made once. It runs in one pass, or as one launch.
//
// Who copies: on a device, a rank writes into its partners' halos, since this suits the links
// between devices. On a host, two partners share all copies between them, in both directions: each
// does one half. In an x face, the ghosts of a row and the points that are sent lie in one cache
// line. So each line is fetched by one rank, once. With each rank reading for its own halo, x faces
// take twice as long. A receive buffer that is in no shared window is written by its owner alone.
//
// Protocol: when the plan is made, partners tell each other where their messages are, and in which
// layout. An exchange between two partners has three steps: both send "ready", both copy, and both
// send "done". The messages have no data.
//
// Why no accesses race (a race detector does not look across processes): there are no flags in
// shared memory. Messages alone order two accesses of a byte. MPI_Win_sync comes before each send
// and after each receive (MPI-4.1 section 12.7, unified model). A partner accesses a byte between
// the owner's "ready" and the partner's "done". Its owner accesses the byte at one of these times:
// - before start(), hence before "ready";
// - after finish(), hence after "done";
// - in an earlier round, if the byte is a ghost that travels on, hence before "ready";
// - in the same round. Then both ranks only read the byte, since a source and a destination of one
//   round never overlap, and each byte of a destination is written by one of them.
#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "comm/exchange/backend.hpp"
#include "comm/exchange/packed_messages.hpp"
#include "comm/messages/planned_buffer.hpp"
#include "comm/mpi/persistent_requests.hpp"
#include "comm/node/shared_window.hpp"
#include "dtype/datatype.hpp"
#include "dtype/pack/copy_plan.hpp"
#include "support/mpi_check.hpp"
#include "support/narrow.hpp"
#include "support/region.hpp"

namespace halocline::comm::detail {

namespace {

using dtype::PackPlan;
using dtype::SharedMemory;
using Address = std::uintptr_t;

/// Gives access to the memory of the other ranks of a node.
class PeerMemory {
 public:
  virtual ~PeerMemory() = default;
  /// Returns a name of an address of this rank for other ranks; nullopt if they cannot reach it.
  virtual std::optional<SharedMemory> share(const void* address) const = 0;
  /// Returns the address here of memory that `rank` has shared; nullptr if it cannot be reached.
  virtual std::byte* open(const SharedMemory& shared, int rank) = 0;
  /// Orders accesses to shared memory. Called before each "ready" or "done" is sent, and after it
  /// has arrived.
  virtual void sync() const = 0;
  /// Gives back the opened memory. Collective unless an exception is under way.
  virtual void close(MPI_Comm comm) = 0;
};

class PeerWindows final : public PeerMemory {
 public:
  explicit PeerWindows(const std::vector<const SharedWindow*>& windows) : windows_(windows) {}

  std::optional<SharedMemory> share(const void* address) const override {
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      const auto offset = windows_[i]->offset_of(address);
      if (!offset) continue;
      SharedMemory out{.offset = *offset, .bytes = windows_[i]->bytes() - *offset};
      std::memcpy(out.allocation.data(), &i, sizeof(i));
      return out;
    }
    return std::nullopt;
  }
  std::byte* open(const SharedMemory& shared, int rank) override {
    std::size_t i = 0;
    std::memcpy(&i, shared.allocation.data(), sizeof(i));
    auto* const begin = i < windows_.size() ? windows_[i]->data_of(rank) : nullptr;
    return begin == nullptr ? nullptr : begin + shared.offset;
  }
  void sync() const override {
    for (const auto* window : windows_) window->sync();
  }
  void close(MPI_Comm) override {}

 private:
  const std::vector<const SharedWindow*> windows_;
};

/// Opens the memory of other devices by their memory handles, each allocation once.
class PeerDevices final : public PeerMemory {
 public:
  explicit PeerDevices(dtype::Device& device) : device_(device) {}
  PeerDevices(const PeerDevices&) = delete;
  PeerDevices& operator=(const PeerDevices&) = delete;
  ~PeerDevices() override { close_all(); }

  std::optional<SharedMemory> share(const void* address) const override {
    return device_.share(address);
  }
  std::byte* open(const SharedMemory& shared, int) override {
    auto found = begins_.find(shared.allocation);
    if (found == begins_.end()) {
      auto* const begin = device_.open(shared);
      if (begin == nullptr) return nullptr;
      found = begins_.emplace(shared.allocation, begin).first;
    }
    return static_cast<std::byte*>(found->second) + shared.offset;
  }
  void sync() const override {}
  // The barrier keeps owners from freeing memory that others have open.
  void close(MPI_Comm comm) override {
    close_all();
    if (!mpi_is_over() && std::uncaught_exceptions() == 0) HALOCLINE_MPI(MPI_Barrier(comm));
  }

 private:
  void close_all() {
    for (const auto& [name, begin] : begins_) device_.close(begin);
    begins_.clear();
  }
  dtype::Device& device_;
  std::map<decltype(SharedMemory::allocation), void*> begins_;
};

[[noreturn]] void throw_impossible(const std::string& why) {
  throw ConfigError("method shared is not possible (" + why + "): use another method, such as p2p");
}

/// Says where a message is in the memory of a rank.
struct Place {
  bool is_shared;           ///< tells if other ranks can reach it
  SharedMemory first_byte;  ///< lowest byte of the data
  std::int64_t distance;    ///< bytes from the buffer argument to first_byte
};

/// Tells a partner where a message is. `type_bytes` bytes with the type's expression follow.
struct Offer {
  Place place;
  std::int64_t count;
  std::int64_t type_bytes;
};

/// Holds an offer that was read.
struct Offered {
  Place place;
  PackPlan plan;
  std::int64_t count;
};

/// Reads the offers of a rank, one after the other.
class Offers {
 public:
  explicit Offers(const std::vector<std::byte>& bytes) : bytes_(bytes) {}

  std::vector<Offered> next(std::size_t number) {
    std::vector<Offered> out;
    for (std::size_t i = 0; i < number; ++i) {
      Offer offer{};
      std::memcpy(&offer, bytes_.data() + at_, sizeof(offer));
      const std::string type(reinterpret_cast<const char*>(bytes_.data()) + at_ + sizeof(offer),
                             static_cast<std::size_t>(offer.type_bytes));
      at_ += sizeof(offer) + type.size();
      auto found = plans_.find(type);  // fields share their types
      if (found == plans_.end())
        found = plans_.emplace(type, dtype::make_plan(*dtype::parse_type(type))).first;
      out.push_back({offer.place, found->second, offer.count});
    }
    return out;
  }

 private:
  const std::vector<std::byte>& bytes_;
  std::size_t at_ = 0;
  std::map<std::string, PackPlan> plans_;
};

/// Names bytes of the shared windows of two partners by addresses that are the same on both of
/// them. So both compile the same plan of their copies, and each takes another half.
///
/// | rank, 1 bit | window, 13 bits | offset in the window, 49 bits, from the middle |
class PairAddresses {
 public:
  static Address of(int side, const Place& place) {
    const auto window = window_of(place.first_byte);
    const auto offset = kMiddle + static_cast<Address>(place.first_byte.offset - place.distance);
    if (window >> kWindowBits != 0 || offset >> kOffsetBits != 0)
      throw_impossible("there are too many windows, or an address is too long");
    return (Address{side != 0} << kWindowBits | window) << kOffsetBits | offset;
  }
  static std::size_t window_of(const SharedMemory& memory) {
    std::size_t out = 0;
    std::memcpy(&out, memory.allocation.data(), sizeof(out));
    return out;
  }
  /// Returns the place here. `begin_of(side, window)` is where that window of that rank begins.
  template <class BeginOf>
  static Address here(Address name, const BeginOf& begin_of) {
    const auto key = name >> kOffsetBits;
    return begin_of(static_cast<int>(key >> kWindowBits), key % (1U << kWindowBits)) +
           (name % (Address{1} << kOffsetBits) - kMiddle);
  }

 private:
  static_assert(sizeof(Address) == 8);
  static constexpr int kOffsetBits = 49, kWindowBits = 13;
  static constexpr Address kMiddle = Address{1} << (kOffsetBits - 1);
};

PackPlan plan_of(const Piece& piece, TypePlans& plans) {
  const auto* plan = plans.find(piece.type);
  if (plan == nullptr) throw_impossible(plans.reasons().back());
  return *plan;
}

class SharedExchange final : public Backend {
 public:
  SharedExchange(const ExchangeContext& context, Transport transport,
                 std::unique_ptr<PeerMemory> peers, bool on_device, TypePlans& plans)
      : comm_(context.comm),
        transport_(std::move(transport)),
        peers_(std::move(peers)),
        on_device_(on_device) {
    auto partners = partners_of(without_own(context.sends, comm_->rank()));
    const auto senders = partners_of(without_own(context.receives, comm_->rank()));
    partners.insert(partners.end(), senders.begin(), senders.end());
    std::sort(partners.begin(), partners.end());
    partners.erase(std::unique(partners.begin(), partners.end()), partners.end());
    for (const int partner : partners) {
      ready_out_.add(Role::sender, nullptr, 0, MPI_BYTE, partner, kReady, comm_->get());
      ready_in_.add(Role::receiver, nullptr, 0, MPI_BYTE, partner, kReady, comm_->get());
      done_out_.add(Role::sender, nullptr, 0, MPI_BYTE, partner, kDone, comm_->get());
      done_in_.add(Role::receiver, nullptr, 0, MPI_BYTE, partner, kDone, comm_->get());
    }
    std::vector<Bytes> out(static_cast<std::size_t>(comm_->size()));
    collectively(comm_->get(), [&] {
      if (!on_device_) offer(context.sends, plans, true, out);
      offer(context.receives, plans, on_device_, out);
    });
    const auto in = exchange_bytes(out);
    collectively(comm_->get(), [&] {
      auto alone = jobs_inside(context, plans);
      for (const int partner : partners) {
        const auto& told = in[static_cast<std::size_t>(partner)];
        const auto& offered = out[static_cast<std::size_t>(partner)];
        if (on_device_)
          add_writes(partner, context, plans, told, alone);
        else
          add_shared(partner, context, plans, told, offered, alone);
      }
      parts_.emplace_back(alone);
      copy_ = dtype::CopyPlan::joined(std::exchange(parts_, {}));
      transport_.packer().prepare(copy_);
    });
  }

  ~SharedExchange() override {
    transport_.settle();
    try {
      peers_->close(comm_->get());
    } catch (const std::exception&) {
      // The next use of the device or of MPI reports the error, too.
    }
  }

  // A device copies while the host does other work.
  void begin() override {
    const ProfileRegion region("halocline: transfer");
    const double start = MPI_Wtime();
    ready_in_.start_all();
    done_in_.start_all();
    peers_->sync();
    ready_out_.start_all();
    if (on_device_) copy();
    time_ = MPI_Wtime() - start;
  }

  bool progress() override { return ready_in_.test_all(); }

  PhaseTimes end() override {
    const ProfileRegion region("halocline: transfer");
    const double start = MPI_Wtime();
    if (!on_device_) copy();
    transport_.packer().fence();
    peers_->sync();
    done_out_.start_all();
    done_in_.wait_all();
    ready_out_.wait_all();
    done_out_.wait_all();
    peers_->sync();
    return {.pack = {}, .transfer = time_ + MPI_Wtime() - start, .unpack = {}};
  }

 private:
  static constexpr int kReady = 0, kDone = 1;
  using Bytes = std::vector<std::byte>;
  using Jobs = std::vector<dtype::CopyJob>;

  void copy() {
    ready_in_.wait_all();
    peers_->sync();
    transport_.packer().copy(copy_);
  }

  Place place_of(const Piece& piece, const PackPlan& plan) const {
    const auto span = span_of(piece, plan);
    const auto shared = peers_->share(span.first);
    if (!shared || shared->bytes < span.bytes) return {false, {}, span.distance};
    return {true, *shared, span.distance};
  }

  // Adds the offer of each piece to the bytes for its partner. With `is_needed`, a partner must
  // reach the piece.
  void offer(const Pieces& pieces, TypePlans& plans, bool is_needed,
             std::vector<Bytes>& out) const {
    for (const auto& piece : pieces) {
      if (piece.partner == comm_->rank()) continue;
      const auto place = place_of(piece, plan_of(piece, plans));
      const auto type = dtype::to_string(*std::get<dtype::TypeExprPtr>(dtype::decode(piece.type)));
      const Offer offer{place, piece.count, std::ssize(type)};
      if (is_needed && !offer.place.is_shared)
        throw_impossible(
            (on_device_ ? "a receive buffer of rank " : "a send buffer of rank ") +
            std::to_string(comm_->rank()) + ", partner " + std::to_string(piece.partner) +
            ", tag " + std::to_string(piece.tag) +
            (on_device_
                 ? ", is not in one allocation of the device that other processes can open"
                 : ", is not in memory of halocline_alloc() (comm::SharedWindow in C++) of the "
                   "plan's ranks in the plan's order, or the node could not share it"));
      auto& bytes = out[static_cast<std::size_t>(piece.partner)];
      const auto* begin = reinterpret_cast<const std::byte*>(&offer);
      bytes.insert(bytes.end(), begin, begin + sizeof(offer));
      begin = reinterpret_cast<const std::byte*>(type.data());
      bytes.insert(bytes.end(), begin, begin + type.size());
    }
  }

  // Sends each rank its bytes. Returns the bytes from each rank. Collective.
  std::vector<Bytes> exchange_bytes(const std::vector<Bytes>& out) const {
    std::vector<Bytes> in(out.size());
    std::vector<int> out_sizes(out.size()), in_sizes(out.size());
    collectively(comm_->get(), [&] {
      std::transform(out.begin(), out.end(), out_sizes.begin(), [](const auto& bytes) {
        return checked_int(std::ssize(bytes), "length of the types of a partner's messages");
      });
    });
    HALOCLINE_MPI(
        MPI_Alltoall(out_sizes.data(), 1, MPI_INT, in_sizes.data(), 1, MPI_INT, comm_->get()));
    // The signals of exchanges use the tag kReady, too. All offers have arrived before the first
    // one.
    std::vector<MPI_Request> requests;
    for (std::size_t rank = 0; rank < out.size(); ++rank) {
      in[rank].resize(static_cast<std::size_t>(in_sizes[rank]));
      const int partner = static_cast<int>(rank);
      if (!in[rank].empty())
        HALOCLINE_MPI(MPI_Irecv(in[rank].data(), in_sizes[rank], MPI_BYTE, partner, kReady,
                                comm_->get(), &requests.emplace_back()));
      if (!out[rank].empty())
        HALOCLINE_MPI(MPI_Isend(out[rank].data(), out_sizes[rank], MPI_BYTE, partner, kReady,
                                comm_->get(), &requests.emplace_back()));
    }
    HALOCLINE_MPI(
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
    return in;
  }

  std::byte* opened(const SharedMemory& memory, int rank) {
    auto* const out = peers_->open(memory, rank);
    if (out == nullptr)
      throw_impossible(on_device_ ? "this process cannot open the memory of another one's device"
                                  : "a partner's shared window is not in the plan of this rank");
    return out;
  }
  // Returns the data of an offer, at their place here.
  PlannedBuffer open(const Offered& offered, int partner) {
    const auto buffer = reinterpret_cast<Address>(opened(offered.place.first_byte, partner)) -
                        static_cast<Address>(offered.place.distance);
    return {offered.plan, reinterpret_cast<void*>(buffer), offered.count};
  }

  static dtype::CopyJob job(const PlannedBuffer& from, const PlannedBuffer& to) {
    return {from.plan, from.buffer, from.count, to.plan, to.buffer, to.count};
  }
  static PlannedBuffer buffer_of(const Piece& piece, TypePlans& plans) {
    return {plan_of(piece, plans), piece.buffer, piece.count};
  }
  static std::span<const Piece> pieces_of(const Pieces& pieces, int partner) {
    const auto [first, last] = std::ranges::equal_range(pieces, partner, {}, &Piece::partner);
    return {first, last};
  }

  // Returns the copies from this rank to itself.
  Jobs jobs_inside(const ExchangeContext& context, TypePlans& plans) const {
    const auto from = pieces_of(context.sends, comm_->rank());
    const auto to = pieces_of(context.receives, comm_->rank());
    Jobs out;
    for (std::size_t i = 0; i < from.size(); ++i)
      out.push_back(job(buffer_of(from[i], plans), buffer_of(to[i], plans)));
    return out;
  }

  // Adds the copies from this rank's device to that of a partner.
  void add_writes(int partner, const ExchangeContext& context, TypePlans& plans, const Bytes& told,
                  Jobs& out) {
    const auto from = pieces_of(context.sends, partner);
    const auto to = Offers(told).next(from.size());
    for (std::size_t i = 0; i < from.size(); ++i)
      out.push_back(job(buffer_of(from[i], plans), open(to[i], partner)));
  }

  // Adds this rank's half of the copies between it and a partner. Adds those that only this rank
  // can do to `alone`. Both ranks read the same offers, so they make the same plan.
  void add_shared(int partner, const ExchangeContext& context, TypePlans& plans, const Bytes& told,
                  const Bytes& offered, Jobs& alone) {
    const auto receives = pieces_of(context.receives, partner);
    const auto sends = pieces_of(context.sends, partner).size();
    Offers theirs(told), mine(offered);
    const auto their_sends = theirs.next(receives.size()), their_receives = theirs.next(sends);
    const auto my_sends = mine.next(sends), my_receives = mine.next(receives.size());
    for (std::size_t i = 0; i < receives.size(); ++i)
      if (!my_receives[i].place.is_shared)
        alone.push_back(job(open(their_sends[i], partner), buffer_of(receives[i], plans)));

    const int here = comm_->rank() < partner ? 0 : 1, there = 1 - here;
    Jobs all;
    const auto add = [&](const std::vector<Offered>& from, int from_side,
                         const std::vector<Offered>& to, int to_side) {
      const auto named = [](const Offered& offer, int side) {
        auto* const buffer = reinterpret_cast<void*>(PairAddresses::of(side, offer.place));
        return PlannedBuffer{offer.plan, buffer, offer.count};
      };
      for (std::size_t i = 0; i < to.size(); ++i)
        if (to[i].place.is_shared)
          all.push_back(job(named(from[i], from_side), named(to[i], to_side)));
    };
    const auto add_from = [&](int side) {
      if (side == here)
        add(my_sends, here, their_receives, there);
      else
        add(their_sends, there, my_receives, here);
    };
    add_from(0);
    add_from(1);

    const auto begin_of = [&](int side, std::size_t window) {
      SharedMemory begin{};
      std::memcpy(begin.allocation.data(), &window, sizeof(window));
      return reinterpret_cast<Address>(opened(begin, side == here ? comm_->rank() : partner));
    };
    using Half = dtype::CopyPlan::Half;
    parts_.push_back(
        dtype::CopyPlan(all).half(here == 0 ? Half::first : Half::second).moved([&](Address name) {
          return PairAddresses::here(name, begin_of);
        }));
  }

  std::shared_ptr<const Communicator> comm_;
  Transport transport_;
  std::unique_ptr<PeerMemory> peers_;
  bool on_device_;
  PersistentRequests ready_out_, ready_in_, done_out_, done_in_;
  std::vector<dtype::CopyPlan> parts_;  // with each partner, while copy_ is made
  dtype::CopyPlan copy_;
  double time_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_shared_exchange(const ExchangeContext& context, Transport transport,
                                              dtype::Device* device,
                                              const std::vector<const SharedWindow*>& windows,
                                              TypePlans& plans) {
  std::unique_ptr<PeerMemory> peers;
  if (device != nullptr)
    peers = std::make_unique<PeerDevices>(*device);
  else
    peers = std::make_unique<PeerWindows>(windows);
  return std::make_unique<SharedExchange>(context, std::move(transport), std::move(peers),
                                          device != nullptr, plans);
}

}  // namespace halocline::comm::detail
