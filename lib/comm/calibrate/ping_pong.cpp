// SPDX-License-Identifier: BSD-3-Clause
#include "comm/calibrate/ping_pong.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "comm/mpi/communicator.hpp"
#include "support/mpi_check.hpp"

namespace halocline::comm::detail {

namespace {

// Holds one rank's end of messages in host or device memory.
class Messages {
 public:
  Messages(MPI_Comm comm, int partner, const TouchedMemory& sent, const TouchedMemory& received)
      : comm_(comm), partner_(partner), sent_(sent.data()), received_(received.data()) {}

  // Sends a number of messages of `bytes` bytes each at once, and receives as many.
  void round_trip(std::int64_t messages, std::int64_t bytes, bool first) {
    requests_.clear();
    // Receives are posted before anything is sent, as in an exchange.
    for (std::int64_t i = 0; i < messages; ++i)
      HALOCLINE_MPI(MPI_Irecv(received_ + i * bytes, static_cast<int>(bytes), MPI_BYTE, partner_,
                              kTag, comm_, &requests_.emplace_back()));
    if (!first) wait();
    for (std::int64_t i = 0; i < messages; ++i)
      HALOCLINE_MPI(MPI_Isend(sent_ + i * bytes, static_cast<int>(bytes), MPI_BYTE, partner_, kTag,
                              comm_, &requests_.emplace_back()));
    wait();
  }

 private:
  void wait() {
    HALOCLINE_MPI(
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE));
    requests_.clear();
  }

  static constexpr int kTag = 2;  // other than those of PingPong
  MPI_Comm comm_;
  int partner_;
  std::byte *sent_, *received_;
  std::vector<MPI_Request> requests_;
};

// Connects two ranks for round trips of messages. A trip has a number of messages and their bytes.
PingPong connect(MPI_Comm comm, int partner, Messages& messages, bool first) {
  return {comm, partner, [&messages, first](const PingPong::What& what) -> PingPong::Trip {
            return [&messages, first, number = what[0], bytes = what[1]] {
              messages.round_trip(number, bytes, first);
            };
          }};
}

}  // namespace

// Orders round trips from the partner. 0 calls: the end.
struct PingPong::Order {
  What what;
  std::int64_t calls, is_timed;
};

void PingPong::order(const Order& order) {
  HALOCLINE_MPI(MPI_Send(&order, sizeof order / sizeof(std::int64_t), MPI_INT64_T, partner_,
                         kOrderTag, comm_));
}

double PingPong::run(const Order& order) {
  const auto trip = trip_of_(order.what);
  if (order.is_timed != 0) trip();
  const auto start = steady_seconds();
  for (auto i = order.calls; i > 0; --i) trip();
  return (steady_seconds() - start) / static_cast<double>(order.calls);
}

void PingPong::lead(const What& what, std::int64_t calls) {
  const Order untimed{what, calls, 0};
  order(untimed);
  run(untimed);
}

double PingPong::time(const What& what, std::int64_t calls) {
  const Order timed{what, calls, 1};
  order(timed);
  const auto mine = run(timed);
  double answer = 0;
  HALOCLINE_MPI(MPI_Recv(&answer, 1, MPI_DOUBLE, partner_, kAnswerTag, comm_, MPI_STATUS_IGNORE));
  return std::max(mine, answer);
}

void PingPong::end() {
  order({});
}

void PingPong::follow() {
  for (Order order{};;) {
    HALOCLINE_MPI(MPI_Recv(&order, sizeof order / sizeof(std::int64_t), MPI_INT64_T, partner_,
                           kOrderTag, comm_, MPI_STATUS_IGNORE));
    if (order.calls == 0) return;
    const auto mine = run(order);
    if (order.is_timed != 0)
      HALOCLINE_MPI(MPI_Send(&mine, 1, MPI_DOUBLE, partner_, kAnswerTag, comm_));
  }
}

std::int64_t message_memory(const Grid& grid) {
  return std::max(grid.message_bytes.back(), grid.bytes_at_once);
}

dtype::MessageTimes measure_ping_pong(MPI_Comm comm, int partner, const TouchedMemory& sent,
                                      const TouchedMemory& received, const Grid& grid,
                                      const Effort& effort) {
  Messages messages(comm, partner, sent, received);
  auto pair = connect(comm, partner, messages, true);
  const auto& sizes = grid.message_bytes;
  const auto trials = [&](std::size_t layer) {
    std::vector<Trial> out;
    for (std::size_t i = 0; i < numbers_for(grid, sizes[layer]); ++i)
      out.emplace_back(
          [&pair, number = grid.messages_at_once[i], bytes = sizes[layer]](std::int64_t calls) {
            return pair.time({number, bytes}, calls) / 2;
          });
    return out;
  };
  const auto& numbers = grid.messages_at_once;
  const auto times_as_much = [](std::int64_t more, std::int64_t less) {
    return static_cast<double>(more) / static_cast<double>(less);
  };
  // A point does more than the points with fewer bytes a message, and with fewer messages.
  const auto lesser = [&](std::size_t layer, std::size_t i) {
    std::vector<Lesser> out;
    if (layer > 0) out.push_back({layer - 1, i, times_as_much(sizes[layer], sizes[layer - 1])});
    if (i > 0) out.push_back({layer, i - 1, times_as_much(numbers[i], numbers[i - 1])});
    return out;
  };
  const auto [times, noisy] =
      measure({sizes.size(), static_cast<double>(grid.bytes_growth), trials, lesser},
              effort.seconds, steady_seconds, effort.done);
  pair.end();
  if (times.size() < sizes.size()) effort.cut(sizes[times.size() - 1], sizes.back());
  for (const auto& [layer, i] : noisy)
    effort.noisy(std::to_string(numbers[i]) + (numbers[i] == 1 ? " message of " : " messages of ") +
                 dtype::text_of_bytes(sizes[layer]));

  std::vector<dtype::MessageTimes::AtOnce> measured;
  for (std::size_t i = 0; i < grid.messages_at_once.size(); ++i) {
    std::vector<std::int64_t> bytes;
    std::vector<double> seconds;
    for (std::size_t layer = 0; layer < times.size() && i < times[layer].size(); ++layer) {
      bytes.push_back(sizes[layer]);
      seconds.push_back(times[layer][i]);
    }
    measured.push_back(
        {grid.messages_at_once[i], {std::move(bytes), std::move(seconds), "calibration"}});
  }
  return {std::move(measured), "calibration"};
}

void serve_ping_pong(MPI_Comm comm, int partner, const TouchedMemory& sent,
                     const TouchedMemory& received) {
  Messages messages(comm, partner, sent, received);
  connect(comm, partner, messages, false).follow();
}

}  // namespace halocline::comm::detail

namespace halocline::comm {

std::optional<dtype::LinkCost> measure_link(MPI_Comm comm, int other) {
  // Longer than the 300 kB that a shaped wire lets through at once.
  constexpr auto kLong = std::int64_t{4} << 20;
  const detail::Grid grid{.message_bytes = {1, kLong},
                          .messages_at_once = {1},
                          .bytes_at_once = kLong,
                          .copy_bytes = {},
                          .packs = {},
                          .strided_blocks = {},
                          .listed_blocks = {},
                          .bytes_growth = kLong};
  int rank = 0;
  HALOCLINE_MPI(MPI_Comm_rank(comm, &rank));
  detail::TouchedMemory sent, received;
  collectively(comm, [&] {
    if (rank != 0 && rank != other) return;
    sent = {nullptr, dtype::MemoryKind::host, kLong};
    received = {nullptr, dtype::MemoryKind::host, kLong};
  });
  std::optional<dtype::LinkCost> out;
  if (rank == 0 || rank == other) {
    constexpr double kSeconds = 0.2;
    if (rank == 0)
      out = link_cost(measure_ping_pong(comm, other, sent, received, grid,
                                        {kSeconds, [](auto) {}, [](auto, auto) {}, [](auto&) {}}));
    else
      detail::serve_ping_pong(comm, 0, sent, received);
  }
  auto cost = out.value_or(dtype::LinkCost{});
  std::array numbers{cost.latency_s, cost.seconds_per_byte, cost.overhead_s};
  HALOCLINE_MPI(MPI_Bcast(numbers.data(), 3, MPI_DOUBLE, 0, comm));
  cost = {numbers[0], numbers[1], numbers[2]};
  return cost.seconds_per_byte > 0 ? std::optional(cost) : std::nullopt;
}

}  // namespace halocline::comm
