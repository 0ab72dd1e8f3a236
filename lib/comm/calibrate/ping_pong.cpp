// SPDX-License-Identifier: BSD-3-Clause
#include "comm/calibrate/ping_pong.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "support/mpi_check.hpp"

namespace halocline::comm::detail {

namespace {

constexpr int kOrderTag = 0, kAnswerTag = 1, kMessageTag = 2;

// Orders `calls` round trips of `messages` messages from the other rank. 0 calls: the end.
using Order = std::array<std::int64_t, 3>;  // messages, bytes of each, calls

class Player {
 public:
  Player(MPI_Comm comm, int partner, const TouchedMemory& sent, const TouchedMemory& received)
      : comm_(comm), partner_(partner), sent_(sent.data()), received_(received.data()) {}

  void order(const Order& order) {
    HALOCLINE_MPI(MPI_Send(order.data(), 3, MPI_INT64_T, partner_, kOrderTag, comm_));
  }
  Order next_order() {
    Order order{};
    HALOCLINE_MPI(
        MPI_Recv(order.data(), 3, MPI_INT64_T, partner_, kOrderTag, comm_, MPI_STATUS_IGNORE));
    return order;
  }

  // Returns this rank's seconds of a round trip, after one warm-up.
  double play(const Order& order, bool first) {
    const auto [messages, bytes, calls] = order;
    round_trip(messages, bytes, first);
    const auto start = steady_seconds();
    for (auto i = calls; i > 0; --i) round_trip(messages, bytes, first);
    return (steady_seconds() - start) / static_cast<double>(calls);
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

 private:
  void round_trip(std::int64_t messages, std::int64_t bytes, bool first) {
    requests_.clear();
    // Receives are posted before anything is sent, as in an exchange.
    receive(messages, bytes);
    if (!first) wait();
    send(messages, bytes);
    wait();
  }
  void receive(std::int64_t messages, std::int64_t bytes) {
    for (std::int64_t i = 0; i < messages; ++i)
      HALOCLINE_MPI(MPI_Irecv(received_ + i * bytes, static_cast<int>(bytes), MPI_BYTE, partner_,
                              kMessageTag, comm_, &requests_.emplace_back()));
  }
  void send(std::int64_t messages, std::int64_t bytes) {
    for (std::int64_t i = 0; i < messages; ++i)
      HALOCLINE_MPI(MPI_Isend(sent_ + i * bytes, static_cast<int>(bytes), MPI_BYTE, partner_,
                              kMessageTag, comm_, &requests_.emplace_back()));
  }
  void wait() {
    HALOCLINE_MPI(
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE));
    requests_.clear();
  }

  MPI_Comm comm_;
  int partner_;
  std::byte *sent_, *received_;
  std::vector<MPI_Request> requests_;
};

}  // namespace

std::int64_t message_memory(const Grid& grid) {
  return std::max(grid.message_bytes.back(), grid.bytes_at_once);
}

dtype::MessageTimes measure_ping_pong(MPI_Comm comm, int partner, const TouchedMemory& sent,
                                      const TouchedMemory& received, const Grid& grid,
                                      const Effort& effort) {
  Player player(comm, partner, sent, received);
  const auto& sizes = grid.message_bytes;
  const auto trials = [&](std::size_t layer) {
    std::vector<Trial> out;
    for (std::size_t i = 0; i < numbers_for(grid, sizes[layer]); ++i)
      out.emplace_back(
          [&player, messages = grid.messages_at_once[i], bytes = sizes[layer]](std::int64_t calls) {
            const Order order{messages, bytes, calls};
            player.order(order);
            const auto mine = player.play(order, true);
            return std::max(mine, player.answer()) / 2;
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
  player.order({});
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
  Player player(comm, partner, sent, received);
  for (auto order = player.next_order(); order[2] > 0; order = player.next_order())
    player.tell(player.play(order, false));
}

}  // namespace halocline::comm::detail
