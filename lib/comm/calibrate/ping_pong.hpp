// SPDX-License-Identifier: BSD-3-Clause
// Makes round trips between two ranks, and measures messages by them: T_cpu-cpu and T_gpu-gpu of
// [PEA21 section 6.3].
//
// Best peer: [PEA21] has one blocking message under way. Here a halo exchange's number of messages
// is under way.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "comm/calibrate/grid.hpp"
#include "comm/calibrate/local_times.hpp"
#include "dtype/model/message_cost.hpp"
#include "dtype/model/time_table.hpp"

namespace halocline::comm {

/// Measures messages in host memory between rank 0 and rank `other`, in about 0.2 s. Returns their
/// cost on all ranks; nullopt if noise is larger than the time of a message of 4 MiB. Collective.
std::optional<dtype::LinkCost> measure_link(MPI_Comm comm, int other);

}  // namespace halocline::comm

namespace halocline::comm::detail {

/// Makes round trips between two ranks. One rank leads: it says which trips, and how many. The
/// other rank follows.
class PingPong {
 public:
  /// Describes a round trip in numbers that both ranks understand.
  using What = std::array<std::int64_t, 4>;
  /// Makes this rank's part of one round trip.
  using Trip = std::function<void()>;

  /// Connects this rank with `partner`. `trip_of` returns the trip that a description stands for.
  PingPong(MPI_Comm comm, int partner, std::function<Trip(const What&)> trip_of)
      : comm_(comm), partner_(partner), trip_of_(std::move(trip_of)) {}

  /// Makes `calls` >= 1 round trips.
  void lead(const What& what, std::int64_t calls);
  /// Makes a round trip as warm-up, and then `calls` >= 1 of them. Returns the seconds of one: the
  /// longer time of the two ranks.
  double time(const What& what, std::int64_t calls);
  /// Ends follow() of the partner.
  void end();
  /// Makes the trips that the partner leads, until it ends.
  void follow();

 private:
  static constexpr int kOrderTag = 0, kAnswerTag = 1;
  struct Order;
  void order(const Order& order);
  double run(const Order& order);

  MPI_Comm comm_;
  int partner_;
  std::function<Trip(const What&)> trip_of_;
};

/// Returns the bytes that the messages of a grid take at each end.
std::int64_t message_memory(const Grid& grid);

/// Measures half round trips: all messages go there at once, then the same number comes back at
/// once, nonblocking. The longer time of the two ranks counts. Call it on one rank of the pair, and
/// serve_ping_pong() on the other rank. `sent` and `received` hold message_memory() bytes each.
dtype::MessageTimes measure_ping_pong(MPI_Comm comm, int partner, const TouchedMemory& sent,
                                      const TouchedMemory& received, const Grid& grid,
                                      const Effort& effort);

/// Answers until the partner has measured everything.
void serve_ping_pong(MPI_Comm comm, int partner, const TouchedMemory& sent,
                     const TouchedMemory& received);

}  // namespace halocline::comm::detail
