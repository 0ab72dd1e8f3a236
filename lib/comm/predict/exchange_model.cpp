// SPDX-License-Identifier: BSD-3-Clause
// Adds up the predicted seconds of an exchange, rank by rank and round by round.
#include "comm/predict/exchange_model.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

namespace halocline::comm {

namespace {

using dtype::Message;
using dtype::PredictedSeconds;
using dtype::Reach;

constexpr std::size_t index(auto number) {
  return static_cast<std::size_t>(number);
}

// Holds a rank's messages of a round, and the data it keeps.
struct Round {
  std::vector<Message> sent, kept;
  std::int64_t off_node_messages = 0;
  double off_node_bytes = 0;
};

Round round_of(int rank, std::vector<RegionTraffic> regions, const std::vector<int>& node_of) {
  std::stable_sort(regions.begin(), regions.end(),
                   [](const auto& a, const auto& b) { return a.partner < b.partner; });
  Round out;
  int partner = -1;
  for (const auto& region : regions) {
    const auto reach = region.partner == rank                                   ? Reach::self
                       : node_of[index(region.partner)] == node_of[index(rank)] ? Reach::on_node
                                                                                : Reach::off_node;
    const bool continues = region.partner == partner;
    partner = region.partner;
    (reach == Reach::self ? out.kept : out.sent)
        .push_back({region.bytes_out, region.source, region.destination, reach, continues});
    if (reach != Reach::off_node) continue;
    out.off_node_messages += continues ? 0 : 1;
    out.off_node_bytes += static_cast<double>(region.bytes_out);
  }
  return out;
}

// Raises `most` to `one`. An unknown value makes the maximum unknown.
void raise(PredictedSeconds& most, const PredictedSeconds& one) {
  most = max(most, one);
}

}  // namespace

Prediction predict_exchange(const dtype::SystemModel& model, const std::vector<int>& node_of,
                            dtype::Transfer transfer, bool on_device, const TrafficOf& traffic_of) {
  const int ranks = static_cast<int>(node_of.size());
  const auto nodes = index(1 + *std::max_element(node_of.begin(), node_of.end()));
  Prediction out;

  // Sum the bytes that leave each node, by round.
  std::vector<std::vector<double>> leaving;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto rounds = traffic_of(rank);
    if (leaving.size() < rounds.size()) leaving.resize(rounds.size(), std::vector<double>(nodes));
    std::int64_t messages = 0;
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      const auto round = round_of(rank, rounds[i], node_of);
      leaving[i][index(node_of[index(rank)])] += round.off_node_bytes;
      messages += std::count_if(round.sent.begin(), round.sent.end(),
                                [](const Message& message) { return !message.continues; });
    }
    out.load.messages = std::max(out.load.messages, messages);
  }
  std::vector<double> of_node(nodes);
  for (const auto& round : leaving)
    for (std::size_t node = 0; node < nodes; ++node) of_node[node] += round[node];
  for (const auto bytes : of_node) {
    out.load.bytes_off_node += bytes;
    out.load.bytes_off_node_of_node = std::max(out.load.bytes_off_node_of_node, bytes);
  }

  struct Slowest {
    dtype::PhaseSeconds phases;
    PredictedSeconds alone, total;  // alone: transfer with no limit of the node
  };
  std::vector<Slowest> slowest(leaving.size());
  for (int rank = 0; rank < ranks; ++rank) {
    const auto rounds = traffic_of(rank);
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      const auto round = round_of(rank, rounds[i], node_of);
      dtype::PhaseSeconds mine;
      if (!round.sent.empty()) mine = phase_seconds(model, round.sent, transfer);
      mine.unpack = mine.unpack + copy_seconds(model, round.kept, on_device);
      raise(slowest[i].alone, mine.transfer);
      raise(mine.transfer, injection_seconds(model, transfer, round.off_node_messages,
                                             leaving[i][index(node_of[index(rank)])]));
      raise(slowest[i].phases.pack, mine.pack);
      raise(slowest[i].phases.transfer, mine.transfer);
      raise(slowest[i].phases.unpack, mine.unpack);
      raise(slowest[i].total, mine.total());
    }
  }
  auto& [sums, total, injection_limits] = out.seconds;
  for (const auto& [phases, alone, sum] : slowest) {
    sums.pack = sums.pack + phases.pack;
    sums.transfer = sums.transfer + phases.transfer;
    sums.unpack = sums.unpack + phases.unpack;
    total = total + sum;
    if (alone && *phases.transfer > *alone) injection_limits = true;
  }
  return out;
}

}  // namespace halocline::comm
