// SPDX-License-Identifier: BSD-3-Clause
// Copies straight from the fields into the neighbours' halos, where these can be reached (method
// shared): one launch for all partners, nothing packed, no bytes through MPI.
//
// Best peer: Open MPI copies the contiguous pieces of a message through CUDA IPC, one by one or
// packed before; here both layouts are strided, and all partners' messages are in one launch.
//
// Each rank tells its partners once where their messages belong and in which layout. An exchange
// is then, between two partners: "my halo may be written" one way, the copy, "your halo is filled"
// the other way; both are messages without data.
#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <map>
#include <utility>

#include "comm/exchange/backend.hpp"
#include "dtype/datatype.hpp"
#include "dtype/pack/copy_plan.hpp"
#include "dtype/support/mpi_check.hpp"
#include "dtype/support/narrow.hpp"
#include "dtype/support/region.hpp"

namespace halocline::comm::detail {

namespace {

using dtype::PackPlan;
using dtype::SharedMemory;
using Address = std::uintptr_t;

/// Where a message belongs, as its receiver says; followed by `type_bytes` of the type's
/// expression.
struct Destination {
  SharedMemory first_byte;  ///< of the data
  std::int64_t distance;    ///< from the buffer argument to there
  std::int64_t count;
  std::int64_t type_bytes;
};

/// What others have opened for us, by allocation: closed at the end.
class Opened {
 public:
  explicit Opened(dtype::Device& device) : device_(device) {}
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() { close(); }
  void close() {
    for (const auto& [name, begin] : begins_) device_.close(begin);
    begins_.clear();
  }

  /// The address here.
  Address at(const SharedMemory& shared) {
    auto found = begins_.find(shared.allocation);
    if (found == begins_.end()) {
      auto* const begin = device_.open(shared);
      if (begin == nullptr)
        throw ConfigError(
            "method shared is not possible (this process cannot open the memory of another "
            "one's device): use another method");
      found = begins_.emplace(shared.allocation, begin).first;
    }
    return reinterpret_cast<Address>(found->second) + static_cast<Address>(shared.offset);
  }

 private:
  dtype::Device& device_;
  std::map<decltype(SharedMemory::allocation), void*> begins_;
};

PackPlan plan_of(const Piece& piece) {
  auto plan = dtype::make_plan(piece.type);
  if (const auto* reason = std::get_if<UnsupportedDatatype>(&plan))
    throw ConfigError("method shared is not possible (" + std::string(reason->what()) +
                      "): use another method");
  return std::get<PackPlan>(std::move(plan));
}

// The ranks of the pieces but this one, in order.
std::vector<int> partners_of(const Pieces& pieces, int rank) {
  std::vector<int> out;
  for (const auto& piece : pieces)
    if (piece.partner != rank && (out.empty() || out.back() != piece.partner))
      out.push_back(piece.partner);
  return out;
}

/// Messages without data, to or from some ranks, again and again.
class Signals {
 public:
  enum class Direction { send, receive };
  Signals(MPI_Comm comm, const std::vector<int>& ranks, int tag, Direction direction)
      : requests_(ranks.size(), MPI_REQUEST_NULL) {
    for (std::size_t i = 0; i < ranks.size(); ++i)
      HALOCLINE_MPI(direction == Direction::send
                        ? MPI_Send_init(nullptr, 0, MPI_BYTE, ranks[i], tag, comm, &requests_[i])
                        : MPI_Recv_init(nullptr, 0, MPI_BYTE, ranks[i], tag, comm, &requests_[i]));
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals() {
    if (mpi_is_over()) return;
    for (auto& request : requests_) MPI_Request_free(&request);
  }

  void start() {
    if (!requests_.empty()) HALOCLINE_MPI(MPI_Startall(count(), requests_.data()));
  }
  void wait() { HALOCLINE_MPI(MPI_Waitall(count(), requests_.data(), MPI_STATUSES_IGNORE)); }

 private:
  int count() const { return static_cast<int>(requests_.size()); }
  std::vector<MPI_Request> requests_;
};

class SharedExchange final : public Backend {
 public:
  SharedExchange(std::shared_ptr<const Communicator> comm, const Pieces& sends,
                 const Pieces& receives, Transport transport, dtype::Device& device)
      : comm_(std::move(comm)),
        transport_(std::move(transport)),
        opened_(device),
        may_write_(comm_->get(), partners_of(sends, comm_->rank()), kReady,
                   Signals::Direction::receive),
        may_be_written_(comm_->get(), partners_of(receives, comm_->rank()), kReady,
                        Signals::Direction::send),
        has_written_(comm_->get(), partners_of(sends, comm_->rank()), kDone,
                     Signals::Direction::send),
        is_written_(comm_->get(), partners_of(receives, comm_->rank()), kDone,
                    Signals::Direction::receive) {
    std::vector<std::vector<std::byte>> out(static_cast<std::size_t>(comm_->size()));
    const auto near = ranks_on_node(comm_->get());
    collectively(comm_->get(), [&] {
      for (const auto& piece : receives)
        if (!near[static_cast<std::size_t>(piece.partner)])
          throw ConfigError("method shared is not possible (rank " + std::to_string(piece.partner) +
                            " is on another node): use another method");
      out = destinations(receives, device);
    });
    const auto in = exchange_bytes(out);
    collectively(comm_->get(), [&] {
      copy_ = dtype::CopyPlan(jobs(sends, receives, in));
      transport_.packer().prepare(copy_);
    });
  }

  // Nobody may free memory that others have open: all close theirs first, unless one has met an
  // error and may be alone here.
  ~SharedExchange() override {
    try {
      transport_.packer().fence();
      opened_.close();
      if (!mpi_is_over() && std::uncaught_exceptions() == 0)
        HALOCLINE_MPI(MPI_Barrier(comm_->get()));
    } catch (const std::exception&) {
      // Whoever uses the device or MPI next is told, too.
    }
  }

  void begin() override {
    const Region region("halocline: transfer");
    start_ = MPI_Wtime();
    may_write_.start();
    is_written_.start();
    may_be_written_.start();
    may_write_.wait();
    transport_.packer().copy(copy_);
    transport_.packer().fence();
    has_written_.start();
  }

  PhaseTimes end() override {
    const Region region("halocline: transfer");
    is_written_.wait();
    may_be_written_.wait();
    has_written_.wait();
    return {.pack = {}, .transfer = MPI_Wtime() - start_, .unpack = {}};
  }

 private:
  static constexpr int kReady = 0, kDone = 1;

  // By partner, where its messages belong.
  std::vector<std::vector<std::byte>> destinations(const Pieces& receives,
                                                   const dtype::Device& device) const {
    std::vector<std::vector<std::byte>> out(static_cast<std::size_t>(comm_->size()));
    for (const auto& piece : receives) {
      if (piece.partner == comm_->rank()) continue;
      const auto bounds = plan_of(piece).bounds();
      const auto type = dtype::to_string(*std::get<dtype::TypeExprPtr>(dtype::decode(piece.type)));
      // From the least byte on, whatever the extent's sign.
      const auto others = bounds.extent * (piece.count - 1);
      const auto distance = bounds.true_lb + std::min<std::int64_t>(others, 0);
      const auto span = bounds.true_extent + std::abs(others);
      const auto* first = reinterpret_cast<const void*>(reinterpret_cast<Address>(piece.buffer) +
                                                        static_cast<Address>(distance));
      const auto shared = device.share(first);
      if (!shared || shared->bytes < span)
        throw ConfigError(
            "method shared is not possible (a receive buffer is not in one allocation of the "
            "device that other processes can open): use another method");
      const Destination destination{*shared, distance, piece.count, std::ssize(type)};
      auto& bytes = out[static_cast<std::size_t>(piece.partner)];
      const auto* begin = reinterpret_cast<const std::byte*>(&destination);
      bytes.insert(bytes.end(), begin, begin + sizeof(destination));
      begin = reinterpret_cast<const std::byte*>(type.data());
      bytes.insert(bytes.end(), begin, begin + type.size());
    }
    return out;
  }

  // To each rank its own, and what the others had for this one. Collective.
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

  // What goes to others and what stays, both in wire order, in which they are told.
  std::vector<dtype::CopyJob> jobs(const Pieces& sends, const Pieces& receives,
                                   const std::vector<std::vector<std::byte>>& told) {
    std::vector<dtype::CopyJob> out;
    std::vector<std::size_t> next(told.size());
    auto own = std::find_if(receives.begin(), receives.end(),
                            [&](const Piece& p) { return p.partner == comm_->rank(); });
    for (const auto& piece : sends) {
      if (piece.partner == comm_->rank()) {
        out.push_back(
            {plan_of(piece), piece.buffer, piece.count, plan_of(*own), own->buffer, own->count});
        ++own;
        continue;
      }
      const auto partner = static_cast<std::size_t>(piece.partner);
      const auto* bytes = told[partner].data() + next[partner];
      Destination to{};
      std::memcpy(&to, bytes, sizeof(to));
      const std::string_view type(reinterpret_cast<const char*>(bytes) + sizeof(to),
                                  static_cast<std::size_t>(to.type_bytes));
      next[partner] += sizeof(to) + type.size();
      const auto buffer = opened_.at(to.first_byte) - static_cast<Address>(to.distance);
      out.push_back({plan_of(piece), piece.buffer, piece.count,
                     dtype::make_plan(*dtype::parse_type(type)), reinterpret_cast<void*>(buffer),
                     to.count});
    }
    return out;
  }

  std::shared_ptr<const Communicator> comm_;
  Transport transport_;
  Opened opened_;
  Signals may_write_, may_be_written_, has_written_, is_written_;
  dtype::CopyPlan copy_;
  double start_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_shared_exchange(std::shared_ptr<const Communicator> comm,
                                              const Pieces& sends, const Pieces& receives,
                                              Transport transport, dtype::Device& device) {
  return std::make_unique<SharedExchange>(std::move(comm), sends, receives, std::move(transport),
                                          device);
}

}  // namespace halocline::comm::detail
