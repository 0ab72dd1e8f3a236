// SPDX-License-Identifier: BSD-3-Clause
// Copies from the fields of one rank to the halo of another rank of its node (method shared).
// Nothing is packed, and no bytes go through MPI.
//
// Best peer: Open MPI copies a message of a node once, too. But it walks both types for every
// message, and copies piece by piece through CUDA IPC. Here the joint plan of both layouts and of
// all partners is made once. It runs in one pass through memory or to a device.
//
// Who copies: on a device, a rank writes into its partners' halos, since this suits the links
// between devices. On a host, a rank reads its partners' fields in shared windows and writes its
// own halo. So it writes every cache line of the halo once, whoever the partners on both sides of
// the line are.
//
// Protocol: one side offers memory. When the plan is made, this side sends its partners where their
// messages are, and in which layout. An exchange between two partners has three steps: the side
// that offers sends "ready", the other side copies, and then it sends "done". Both messages have no
// data.
//
// Why no accesses race (a race detector does not look across processes): there are no flags in
// shared memory. Messages alone order two accesses of a byte. MPI_Win_sync comes before each send
// and after each receive (MPI-4.1 section 12.7, unified model). On a host, a partner reads a byte
// between "ready" and "done". Its owner writes the byte at one of these times:
// - before start(), hence before "ready";
// - after finish(), hence after "done";
// - in an earlier round, if the byte is a ghost that travels on, hence before "ready".
//
// A rank writes bytes of its halo. Other ranks read them in later rounds alone, since a source and
// a destination of one round never overlap. On a device the same holds with reader and writer
// exchanged.
#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <map>
#include <string_view>
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

/// Says where a message is in the memory of the rank that offers it. `type_bytes` bytes with the
/// type's expression follow.
struct Offer {
  SharedMemory first_byte;  ///< lowest byte of the data
  std::int64_t distance;    ///< bytes from the buffer argument to first_byte
  std::int64_t count;
  std::int64_t type_bytes;
};

[[noreturn]] void throw_impossible(const std::string& why) {
  throw ConfigError("method shared is not possible (" + why + "): use another method, such as p2p");
}

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
    const auto& offered = on_device ? context.receives : context.sends;
    const auto& mine = on_device ? context.sends : context.receives;
    for (const int partner : partners_of(without_own(offered, comm_->rank()))) {
      ready_out_.add(Role::sender, nullptr, 0, MPI_BYTE, partner, kReady, comm_->get());
      done_in_.add(Role::receiver, nullptr, 0, MPI_BYTE, partner, kDone, comm_->get());
    }
    for (const int partner : partners_of(without_own(mine, comm_->rank()))) {
      ready_in_.add(Role::receiver, nullptr, 0, MPI_BYTE, partner, kReady, comm_->get());
      done_out_.add(Role::sender, nullptr, 0, MPI_BYTE, partner, kDone, comm_->get());
    }
    std::vector<std::vector<std::byte>> out(static_cast<std::size_t>(comm_->size()));
    collectively(comm_->get(), [&] { out = offers(offered, plans); });
    const auto in = exchange_bytes(out);
    collectively(comm_->get(), [&] {
      using Begin = dtype::CopyPlan::Begin;
      copy_ = dtype::CopyPlan(jobs(mine, offered, in, plans),
                              comm_->rank() % 2 == 0 ? Begin::front : Begin::middle);
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

  void copy() {
    ready_in_.wait_all();
    peers_->sync();
    transport_.packer().copy(copy_);
  }

  // Returns the offers to each rank: where its messages are, and in which layout.
  std::vector<std::vector<std::byte>> offers(const Pieces& offered, TypePlans& plans) const {
    std::vector<std::vector<std::byte>> out(static_cast<std::size_t>(comm_->size()));
    for (const auto& piece : offered) {
      if (piece.partner == comm_->rank()) continue;
      const auto span = span_of(piece, plan_of(piece, plans));
      const auto type = dtype::to_string(*std::get<dtype::TypeExprPtr>(dtype::decode(piece.type)));
      const auto shared = peers_->share(span.first);
      if (!shared || shared->bytes < span.bytes)
        throw_impossible(on_device_
                             ? "a receive buffer is not in one allocation of the device "
                               "that other processes can open"
                             : "a send buffer is not in a shared window of Options::windows, "
                               "see comm::SharedWindow");
      const Offer offer{*shared, span.distance, piece.count, std::ssize(type)};
      auto& bytes = out[static_cast<std::size_t>(piece.partner)];
      const auto* begin = reinterpret_cast<const std::byte*>(&offer);
      bytes.insert(bytes.end(), begin, begin + sizeof(offer));
      begin = reinterpret_cast<const std::byte*>(type.data());
      bytes.insert(bytes.end(), begin, begin + type.size());
    }
    return out;
  }

  // Sends each rank its bytes. Returns the bytes from each rank. Collective.
  std::vector<std::vector<std::byte>> exchange_bytes(
      const std::vector<std::vector<std::byte>>& out) const {
    std::vector<std::vector<std::byte>> in(out.size());
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

  // Returns the copies between this rank's pieces and the offers to it, both in wire order. The
  // offers of partners come as bytes, the rank's own as pieces.
  std::vector<dtype::CopyJob> jobs(const Pieces& mine, const Pieces& offered,
                                   const std::vector<std::vector<std::byte>>& told,
                                   TypePlans& plans) {
    std::vector<dtype::CopyJob> out;
    std::vector<std::size_t> next(told.size());
    auto own = std::find_if(offered.begin(), offered.end(),
                            [&](const Piece& p) { return p.partner == comm_->rank(); });
    for (const auto& piece : mine) {
      const auto partner = static_cast<std::size_t>(piece.partner);
      const PlannedBuffer here{plan_of(piece, plans), piece.buffer, piece.count};
      const auto there = piece.partner == comm_->rank()
                             ? PlannedBuffer{plan_of(*own, plans), own->buffer, own->count}
                             : layout_of(piece.partner, told[partner], next[partner]);
      if (piece.partner == comm_->rank()) ++own;
      const auto& from = on_device_ ? here : there;
      const auto& to = on_device_ ? there : here;
      out.push_back({from.plan, from.buffer, from.count, to.plan, to.buffer, to.count});
    }
    return out;
  }

  // Reads the next offer of a partner.
  PlannedBuffer layout_of(int partner, const std::vector<std::byte>& told, std::size_t& next) {
    Offer offer{};
    std::memcpy(&offer, told.data() + next, sizeof(offer));
    const std::string_view type(reinterpret_cast<const char*>(told.data()) + next + sizeof(offer),
                                static_cast<std::size_t>(offer.type_bytes));
    next += sizeof(offer) + type.size();
    auto* const first = peers_->open(offer.first_byte, partner);
    if (first == nullptr)
      throw_impossible(on_device_ ? "this process cannot open the memory of another one's device"
                                  : "a partner's shared window is not in the plan of this rank");
    const auto buffer = reinterpret_cast<Address>(first) - static_cast<Address>(offer.distance);
    return {dtype::make_plan(*dtype::parse_type(type)), reinterpret_cast<void*>(buffer),
            offer.count};
  }

  std::shared_ptr<const Communicator> comm_;
  Transport transport_;
  std::unique_ptr<PeerMemory> peers_;
  bool on_device_;
  PersistentRequests ready_out_, ready_in_, done_out_, done_in_;
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
