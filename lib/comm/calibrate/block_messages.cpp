// SPDX-License-Identifier: BSD-3-Clause
#include "comm/calibrate/block_messages.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "comm/calibrate/ping_pong.hpp"
#include "comm/mpi/streamed_bytes.hpp"
#include "dtype/datatype.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "support/mpi_check.hpp"

namespace halocline::comm::detail {

namespace {

constexpr int kMessageTag = 2;  // other than those of PingPong

// Says how a shape is measured, by two bits. A kind without a bit is one way and packed.
enum Kind : std::int64_t {
  typed = 1,      // MPI sends and receives the datatype
  both_ways = 2,  // a message travels the other way, too
};
constexpr std::size_t kKinds = 4;

// Blocks have gaps of at least their own length. Without gaps, MPI would send them as one block.
constexpr std::int64_t kLeastStrides = 2;

// Messages from this many bytes on are in the same blocks again and again. Shorter ones are each
// elsewhere, out of the caches. Either way the packer gains less than the other way.
constexpr std::int64_t kNear = std::int64_t{1} << 20;

// Returns an indexed type of blocks of `shape`. Each block lies somewhere in its stride, so that
// packers find no order in the list.
dtype::TypeExprPtr list_of(const PackShape& shape) {
  constexpr std::int64_t kStep = 4;  // bytes; blocks stay aligned to it
  const auto places = (shape.stride_bytes - shape.block_bytes) / kStep;
  std::minstd_rand random(1);
  std::vector<std::int64_t> displacements;
  for (std::int64_t i = 0; i < shape.bytes / shape.block_bytes; ++i)
    displacements.push_back(
        i * shape.stride_bytes +
        (places > 0 ? kStep * (static_cast<std::int64_t>(random()) % places) : 0));
  return dtype::type(
      dtype::HindexedBlock{shape.block_bytes, std::move(displacements), dtype::named("byte")});
}

// Holds a shape as datatype and as plan, and the type of its packed bytes.
struct Content {
  Content(const PackShape& shape, std::int64_t field_bytes, bool listed)
      : expression(listed ? list_of(shape) : type_of(shape, field_bytes)),
        type(dtype::make_datatype(*expression)),
        plan(dtype::make_plan(*expression)),
        // Messages of other shapes lie beside it, from the next cache line on.
        distance((plan.bounds().true_lb + plan.bounds().true_extent + kLine - 1) / kLine * kLine) {
    if (kStreams) streamed = std::make_unique<StreamedBytes>(static_cast<int>(shape.bytes));
  }

  dtype::TypeExprPtr expression;
  dtype::Datatype type;  // committed
  dtype::PackPlan plan;
  std::int64_t distance;
  std::unique_ptr<StreamedBytes> streamed;
};

std::int64_t room(const BlockGrid& grid) {
  return grid.axes.bytes.back() + StreamedBytes::kRoom;
}
// Returns the bytes of a field. A list has no rows, so it takes all that its blocks span.
std::int64_t room_of_fields(const BlockGrid& grid) {
  if (!grid.listed) return field_bytes(grid.axes);
  std::int64_t out = 0;
  for (const auto& shape : pack_layer(grid.axes, grid.axes.bytes.back(), kLeastStrides).shapes)
    out = std::max(out, shape.bytes / shape.block_bytes * shape.stride_bytes);
  return out;
}

class Player {
 public:
  Player(MPI_Comm comm, int partner, const BlockMemory& memory, const BlockGrid& grid)
      : comm_(comm),
        partner_(partner),
        listed_(grid.listed),
        field_(memory.field_bytes),
        sent_(memory.sent),
        received_(memory.received),
        packed_(memory.packed),
        arrived_(memory.arrived) {}

  // Returns this rank's part of a message there and back, or of one both ways at once. `what` has
  // the kind, and the bytes, block and stride of a shape.
  PingPong::Trip trip_of(const PingPong::What& what, bool first) {
    const auto& [kind, bytes, block, stride] = what;
    const auto& content = content_of({bytes, block, stride});
    const bool both = (kind & both_ways) != 0, packed = (kind & typed) == 0, far = bytes < kNear;
    place_ = 0;
    return [this, &content, both, packed, far, first] {
      if (far) move_on(content);
      both ? exchange(content, packed) : there_and_back(content, packed, first);
    };
  }

 private:
  // Returns the content of a shape. Those of the last number of bytes are kept, since they take
  // turns, and long lists take long to read.
  const Content& content_of(const PackShape& shape) {
    if (!contents_.empty() && contents_.begin()->second.plan.packed_bytes(1) != shape.bytes)
      contents_.clear();
    return contents_.try_emplace({shape.block_bytes, shape.stride_bytes}, shape, field_, listed_)
        .first->second;
  }

  // Moves to the next place in both fields.
  void move_on(const Content& content) {
    place_ += content.distance;
    if (place_ + content.distance > field_) place_ = 0;
  }
  void there_and_back(const Content& content, bool packed, bool first) {
    if (first) send(content, packed);
    receive(content, packed);
    if (!first) send(content, packed);
  }
  // Names what MPI gets: a buffer, a count and a type.
  struct Given {
    std::byte* buffer;
    int count;
    MPI_Datatype type;
  };
  Given given(const Content& content, bool packed, const TouchedMemory& bytes,
              const TouchedMemory& field) const {
    if (!packed) return {field.data() + place_, 1, content.type.get()};
    if (content.streamed) return {bytes.data(), 1, content.streamed->type()};
    return {bytes.data(), static_cast<int>(content.plan.packed_bytes(1)), MPI_PACKED};
  }
  void pack(const Content& content) const {
    dtype::HostPacker().pack(content.plan, sent_.data() + place_, 1, packed_.data());
    if (content.streamed) content.streamed->part(packed_.data());
  }
  void unpack(const Content& content) const {
    if (content.streamed) content.streamed->join(arrived_.data());
    dtype::HostPacker().unpack(content.plan, arrived_.data(), received_.data() + place_, 1);
  }
  void send(const Content& content, bool packed) {
    if (packed) pack(content);
    const auto [buffer, count, type] = given(content, packed, packed_, sent_);
    HALOCLINE_MPI(MPI_Send(buffer, count, type, partner_, kMessageTag, comm_));
  }
  void receive(const Content& content, bool packed) {
    const auto [buffer, count, type] = given(content, packed, arrived_, received_);
    HALOCLINE_MPI(MPI_Recv(buffer, count, type, partner_, kMessageTag, comm_, MPI_STATUS_IGNORE));
    if (packed) unpack(content);
  }
  void exchange(const Content& content, bool packed) {
    std::array<MPI_Request, 2> requests{};
    const auto [to, room, received] = given(content, packed, arrived_, received_);
    HALOCLINE_MPI(MPI_Irecv(to, room, received, partner_, kMessageTag, comm_, &requests[0]));
    if (packed) pack(content);
    const auto [from, count, sent] = given(content, packed, packed_, sent_);
    HALOCLINE_MPI(MPI_Isend(from, count, sent, partner_, kMessageTag, comm_, &requests[1]));
    HALOCLINE_MPI(MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE));
    if (packed) unpack(content);
  }

  MPI_Comm comm_;
  int partner_;
  bool listed_;
  std::map<std::pair<std::int64_t, std::int64_t>, Content> contents_;  // by block and stride
  std::int64_t field_;  // bytes of sent_ and received_
  const TouchedMemory &sent_, &received_, &packed_, &arrived_;
  std::int64_t place_ = 0;
};

// Connects two ranks for the trips of `player`.
PingPong connect(MPI_Comm comm, int partner, Player& player, bool first) {
  return {comm, partner,
          [&player, first](const PingPong::What& what) { return player.trip_of(what, first); }};
}

}  // namespace

BlockMemory::BlockMemory(const BlockGrid& grid)
    : field_bytes(room_of_fields(grid)),
      sent(nullptr, dtype::MemoryKind::host, field_bytes),
      received(nullptr, dtype::MemoryKind::host, field_bytes),
      packed(nullptr, dtype::MemoryKind::host, room(grid)),
      arrived(nullptr, dtype::MemoryKind::host, room(grid)) {}

std::int64_t block_points(const BlockGrid& grid) {
  std::size_t out = 0;
  for (const auto bytes : grid.axes.bytes)
    out += kKinds * pack_layer(grid.axes, bytes, kLeastStrides).shapes.size();
  return static_cast<std::int64_t>(out);
}

std::int64_t block_memory(const BlockGrid& grid) {
  return 2 * (room_of_fields(grid) + room(grid));
}

dtype::BlockTraffic measure_block_messages(MPI_Comm comm, int partner, const BlockMemory& memory,
                                           const BlockGrid& grid, const Effort& effort) {
  Player player(comm, partner, memory, grid);
  auto pair = connect(comm, partner, player, true);
  const auto& axes = grid.axes;
  std::vector<PackLayer> layers;
  for (const auto bytes : axes.bytes) layers.push_back(pack_layer(axes, bytes, kLeastStrides));
  const auto trials = [&](std::size_t layer) {
    std::vector<Trial> out;
    for (const auto& shape : layers[layer].shapes)
      for (std::size_t kind = 0; kind < kKinds; ++kind)
        out.emplace_back([&pair, shape, kind](std::int64_t calls) {
          const auto number = static_cast<std::int64_t>(kind);
          const auto seconds =
              pair.time({number, shape.bytes, shape.block_bytes, shape.stride_bytes}, calls);
          return (kind & both_ways) != 0 ? seconds : seconds / 2;
        });
    return out;
  };
  const auto [times, noisy] =
      measure({axes.bytes.size(), static_cast<double>(grid.bytes_growth), trials}, effort.seconds,
              steady_seconds, effort.done);
  pair.end();
  if (times.size() < axes.bytes.size()) effort.cut(axes.bytes[times.size() - 1], axes.bytes.back());
  for (const auto& [layer, point] : noisy) {
    const auto& shape = layers[layer].shapes[point / kKinds];
    effort.noisy(dtype::text_of_bytes(shape.bytes) + " in blocks of " +
                 dtype::text_of_bytes(shape.block_bytes) + ", " +
                 dtype::text_of_bytes(shape.stride_bytes) + " apart");
  }
  auto measured = axes;
  measured.bytes.resize(times.size());
  const auto messages = [&](std::size_t traffic) {
    std::array<std::vector<double>, 2> seconds;  // packed, typed
    for (std::size_t i = 0; i < times.size(); ++i)
      for (const auto shape : layers[i].shape_at)
        for (std::size_t packer = 0; packer < seconds.size(); ++packer)
          seconds[packer].push_back(times[i][kKinds * shape + (traffic | packer)]);
    return dtype::BlockMessages{dtype::PackTable(measured, std::move(seconds[0]), "calibration"),
                                dtype::PackTable(measured, std::move(seconds[1]), "calibration")};
  };
  return {messages(0), messages(both_ways)};
}

void serve_block_messages(MPI_Comm comm, int partner, const BlockMemory& memory,
                          const BlockGrid& grid) {
  Player player(comm, partner, memory, grid);
  connect(comm, partner, player, false).follow();
}

}  // namespace halocline::comm::detail
