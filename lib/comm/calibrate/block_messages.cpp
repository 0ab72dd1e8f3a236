// SPDX-License-Identifier: BSD-3-Clause
#include "comm/calibrate/block_messages.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/mpi/streamed_bytes.hpp"
#include "dtype/datatype.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "support/mpi_check.hpp"

namespace halocline::comm::detail {

namespace {

constexpr int kOrderTag = 0, kAnswerTag = 1, kMessageTag = 2;

// Says how a shape is measured, by three bits. A kind without a bit is one way, packed and near.
enum Kind : std::int64_t {
  typed = 1,      // MPI sends and receives the datatype
  both_ways = 2,  // a message travels the other way, too
  far = 4,        // each call takes blocks elsewhere, so short messages are out of the caches
};
constexpr std::size_t kKinds = 8;

constexpr std::int64_t kLine = 64;  // bytes of a cache line

// Orders `calls` calls of a kind and a shape from the other rank. 0 calls: the end.
struct Order {
  std::int64_t kind, bytes, block, stride, calls;
};

// Holds a shape as datatype and as plan, and the type of its packed bytes.
struct Content {
  Content(const PackShape& shape, std::int64_t field_bytes)
      : expression(type_of(shape, field_bytes)),
        type(dtype::make_datatype(*expression)),
        plan(dtype::make_plan(*expression)),
        // Messages of other shapes lie beside it, from the next cache line on.
        distance((plan.bounds().true_extent + kLine - 1) / kLine * kLine) {
    if (kStreams) streamed = std::make_unique<StreamedBytes>(static_cast<int>(shape.bytes));
  }

  dtype::TypeExprPtr expression;
  dtype::Datatype type;  // committed
  dtype::PackPlan plan;
  std::int64_t distance;
  std::unique_ptr<StreamedBytes> streamed;
};

class Player {
 public:
  Player(MPI_Comm comm, int partner, const Grid& grid)
      : comm_(comm),
        partner_(partner),
        field_(field_bytes(grid.blocks)),
        sent_(nullptr, dtype::MemoryKind::host, field_),
        received_(nullptr, dtype::MemoryKind::host, field_),
        packed_(nullptr, dtype::MemoryKind::host, room(grid)),
        arrived_(nullptr, dtype::MemoryKind::host, room(grid)) {}

  void order(const Order& order) {
    HALOCLINE_MPI(MPI_Send(&order, 5, MPI_INT64_T, partner_, kOrderTag, comm_));
  }
  Order next_order() {
    Order order{};
    HALOCLINE_MPI(MPI_Recv(&order, 5, MPI_INT64_T, partner_, kOrderTag, comm_, MPI_STATUS_IGNORE));
    return order;
  }
  void tell(double seconds) {
    HALOCLINE_MPI(MPI_Send(&seconds, 1, MPI_DOUBLE, partner_, kAnswerTag, comm_));
  }
  double answer() {
    double seconds = 0;
    HALOCLINE_MPI(
        MPI_Recv(&seconds, 1, MPI_DOUBLE, partner_, kAnswerTag, comm_, MPI_STATUS_IGNORE));
    return seconds;
  }

  // Returns this rank's seconds of a message, after one warm-up.
  double play(const Order& order, bool first) {
    const Content content({order.bytes, order.block, order.stride}, field_);
    const bool both = (order.kind & both_ways) != 0, packed = (order.kind & typed) == 0;
    const auto call = [&] {
      if ((order.kind & far) != 0) move_on(content);
      both ? exchange(content, packed) : there_and_back(content, packed, first);
    };
    place_ = 0;
    call();
    const auto start = steady_seconds();
    for (auto i = order.calls; i > 0; --i) call();
    return (steady_seconds() - start) / static_cast<double>(both ? order.calls : 2 * order.calls);
  }

 private:
  static std::int64_t room(const Grid& grid) {
    return grid.blocks.bytes.back() + StreamedBytes::kRoom;
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
  std::int64_t field_;  // bytes of sent_ and received_
  TouchedMemory sent_, received_, packed_, arrived_;
  std::int64_t place_ = 0;
};

}  // namespace

std::int64_t block_points(const Grid& grid) {
  std::size_t out = 0;
  for (const auto bytes : grid.blocks.bytes)
    out += kKinds * pack_layer(grid.blocks, bytes).shapes.size();
  return static_cast<std::int64_t>(out);
}

dtype::BlockTraffic measure_block_messages(MPI_Comm comm, int partner, const Grid& grid,
                                           const Effort& effort) {
  Player player(comm, partner, grid);
  const auto& axes = grid.blocks;
  std::vector<PackLayer> layers;
  for (const auto bytes : axes.bytes) layers.push_back(pack_layer(axes, bytes));
  const auto trials = [&](std::size_t layer) {
    std::vector<Trial> out;
    for (const auto& shape : layers[layer].shapes)
      for (std::size_t kind = 0; kind < kKinds; ++kind)
        out.emplace_back([&player, shape, kind](std::int64_t calls) {
          const Order order{static_cast<std::int64_t>(kind), shape.bytes, shape.block_bytes,
                            shape.stride_bytes, calls};
          player.order(order);
          const auto mine = player.play(order, true);
          return std::max(mine, player.answer());
        });
    return out;
  };
  const auto [times, noisy] =
      measure({axes.bytes.size(), static_cast<double>(grid.bytes_growth), trials}, effort.seconds,
              steady_seconds, effort.done);
  player.order({});
  if (times.size() < axes.bytes.size()) effort.cut(axes.bytes[times.size() - 1], axes.bytes.back());
  for (const auto& [layer, point] : noisy) {
    const auto& shape = layers[layer].shapes[point / kKinds];
    effort.noisy(dtype::text_of_bytes(shape.bytes) + " in blocks of " +
                 dtype::text_of_bytes(shape.block_bytes) + ", " +
                 dtype::text_of_bytes(shape.stride_bytes) + " apart");
  }
  auto measured = axes;
  measured.bytes.resize(times.size());
  // The model has the memory, near or far, in which packing gains less: a program may have either.
  const auto messages = [&](std::size_t traffic) {
    std::array<std::vector<double>, 2> seconds;  // packed, typed
    for (std::size_t i = 0; i < times.size(); ++i)
      for (const auto shape : layers[i].shape_at) {
        const auto* const point = &times[i][kKinds * shape];
        const auto gain = [&](std::size_t kind) { return point[kind | typed] / point[kind]; };
        const auto kind = gain(traffic | far) < gain(traffic) ? traffic | far : traffic;
        seconds[0].push_back(point[kind]);
        seconds[1].push_back(point[kind | typed]);
      }
    return dtype::BlockMessages{dtype::PackTable(measured, std::move(seconds[0]), "calibration"),
                                dtype::PackTable(measured, std::move(seconds[1]), "calibration")};
  };
  return {messages(0), messages(both_ways)};
}

void serve_block_messages(MPI_Comm comm, int partner, const Grid& grid) {
  Player player(comm, partner, grid);
  for (auto order = player.next_order(); order.calls > 0; order = player.next_order())
    player.tell(player.play(order, false));
}

}  // namespace halocline::comm::detail
