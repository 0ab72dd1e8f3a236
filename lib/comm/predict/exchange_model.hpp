// SPDX-License-Identifier: BSD-3-Clause
// Predicts the seconds of an exchange on nodes that need not exist.
//
// Best peer: the max-rate model [GOS16] adds up latency, bandwidth and a node's injection rate, for
// messages alone. Here packing and copies to and from devices are phases, too. All is predicted
// from the jobs that an exchange would have, rank by rank.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "dtype/model/message_cost.hpp"

namespace halocline::comm {

/// Describes the data that a rank exchanges with a partner through one region of its halo, all
/// fields together. The partner may be the rank itself.
struct RegionTraffic {
  int partner;
  std::int64_t bytes_out, bytes_in;
  dtype::BlockShape source, destination;
};

/// Lists the regions of one rank, by round. Within a round, regions of one partner need not follow
/// each other.
using RankTraffic = std::vector<std::vector<RegionTraffic>>;

/// Returns the traffic of a rank. Called at most twice for each rank.
using TrafficOf = std::function<RankTraffic(int rank)>;

/// Holds predicted seconds: the maximum over the ranks in each round, summed over the rounds.
/// Values are unknown if the model lacks a part that is needed.
struct ExchangeSeconds {
  dtype::PhaseSeconds phases;
  dtype::PredictedSeconds total;  ///< total of the slowest rank in each round
  bool injection_limits = false;  ///< true if a node's injection rate limits a round's transfer
};

/// Holds the load of all ranks, and of the busiest node and rank.
struct ExchangeLoad {
  double bytes_off_node = 0;          ///< sent by all ranks to other nodes
  double bytes_off_node_of_node = 0;  ///< sent to other nodes by the node that sends most
  std::int64_t messages = 0;          ///< sent to other ranks by the rank that sends most
};

struct Prediction {
  ExchangeSeconds seconds;
  ExchangeLoad load;
};

/// Predicts an exchange as method alltoallv does it: pack, send to all partners at once, unpack,
/// and copy the data that stay. phase_seconds() gives the times of each rank. copy_seconds() gives
/// the time for data from a rank to itself, which counts as unpacking.
///
/// The ranks of a node share its rate of injection: injection_seconds() bounds their transfers.
/// Rounds wait for each other. Ranks wait only for their own messages.
///
/// A pure function. O(regions of all ranks * log points of the model).
///
/// \param model measured times of the machine
/// \param node_of node of each rank
/// \param transfer way of the packed bytes of device memory
/// \param on_device true if the fields are in memory of a device
/// \param traffic_of returns what a rank sends
Prediction predict_exchange(const dtype::SystemModel& model, const std::vector<int>& node_of,
                            dtype::Transfer transfer, bool on_device, const TrafficOf& traffic_of);

}  // namespace halocline::comm
