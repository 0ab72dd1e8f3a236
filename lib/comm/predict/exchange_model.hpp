// SPDX-License-Identifier: BSD-3-Clause
// What an exchange takes on nodes that need not be here.
//
// Best peer: the max-rate model [GOS16] adds up latency, bandwidth and a node's rate of injection
// for messages alone; here packing and copies to and from devices are phases of
// their own, and everything is predicted from the very jobs that an exchange would have, rank by
// rank.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "dtype/select/system_model.hpp"
#include "dtype/select/transfer_selector.hpp"

namespace halocline::comm {

/// What a rank sends to and gets from a partner through one region of its halo, all fields
/// together. The partner may be the rank itself.
struct RegionTraffic {
  int partner;
  std::int64_t bytes_out, bytes_in;
  dtype::BlockShape source, destination;
};

/// Of one rank, by round; within a round regions of one partner need not follow each other.
using RankTraffic = std::vector<std::vector<RegionTraffic>>;

/// Of a rank. Called up to twice for each.
using TrafficOf = std::function<RankTraffic(int rank)>;

/// Seconds of the slowest rank; nullopt where something that is needed is not in the model.
struct ExchangeSeconds {
  dtype::PhaseSeconds phases;
  std::optional<double> total;    ///< of the slowest rank
  bool injection_limits = false;  ///< transfer takes longer than any rank's messages alone
  /// The first part of the model because of which there is no total.
  std::optional<dtype::Unknown> unknown = std::nullopt;
};

/// Sums over all ranks, and of the busiest.
struct ExchangeLoad {
  double bytes_off_node = 0;          ///< of all ranks
  double bytes_off_node_of_node = 0;  ///< of the node that sends most to others
  std::int64_t messages = 0;          ///< to others, of the rank that sends most
};

struct Prediction {
  ExchangeSeconds seconds;
  ExchangeLoad load;
};

/// Pack, send to all partners at once, unpack and copy what stays, as method alltoallv does: by
/// phase_seconds() for each rank, and copy_seconds() for what a rank has for itself, which counts
/// as unpacking. What leaves a node takes at least its latency and its bytes by
/// model.injection_bytes_per_second, whichever of its ranks send it: the max-rate model [GOS16].
/// Rounds wait for each other, ranks only for their messages.
///
/// `node_of`: the node of each rank. `on_device`: where the fields are. A pure function; O(regions
/// of all ranks * log points of the model).
Prediction predict_exchange(const dtype::SystemModel& model, const std::vector<int>& node_of,
                            dtype::Transfer transfer, bool on_device, const TrafficOf& traffic_of);

}  // namespace halocline::comm
