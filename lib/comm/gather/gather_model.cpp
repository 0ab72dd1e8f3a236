// SPDX-License-Identifier: BSD-3-Clause
#include "comm/gather/gather_model.hpp"

#include <algorithm>

namespace halocline::comm {

namespace {

// Returns the seconds until position 0 of a tree has all blocks.
// \param ready seconds until each position has its own block
// \param seconds called as seconds(from, to, blocks), returns the duration of the message with
// these blocks
template <class Seconds>
double tree_seconds(TreeForm form, std::vector<double> ready, Seconds seconds) {
  const int size = static_cast<int>(ready.size());
  // Children have higher numbers than their parents, and are complete before their parents.
  for (int at = size - 1; at >= 0; --at) {
    auto children = tree_steps(form, size, 0, at).children;
    const auto when = [&](const TreeSteps::Child& child) {
      return ready[static_cast<std::size_t>(child.rank)];
    };
    std::stable_sort(children.begin(), children.end(),
                     [&](const auto& a, const auto& b) { return when(a) < when(b); });
    auto& now = ready[static_cast<std::size_t>(at)];
    for (const auto& child : children)
      now = std::max(now, when(child)) + seconds(child.rank, at, child.blocks);
  }
  return ready.front();
}

std::int64_t count(const Positions& positions) {
  return positions.last - positions.first;
}

}  // namespace

double flat_gather_seconds(const RegularGather& gather, const MachineCost& cost, TreeForm form,
                           const std::vector<int>& node_of_rank) {
  const auto node = [&](int rank) {
    return node_of_rank.empty() ? rank / gather.each : node_of_rank[static_cast<std::size_t>(rank)];
  };
  const auto ranks = static_cast<std::size_t>(gather.nodes * gather.each);
  return tree_seconds(form, std::vector<double>(ranks, 0),
                      [&](int from, int to, const Positions& blocks) {
                        const auto& link = node(from) == node(to) ? cost.on_node : cost.off_node;
                        return link.at(count(blocks) * gather.bytes);
                      });
}

double hierarchical_gather_seconds(const RegularGather& gather, const MachineCost& cost,
                                   const TreeForms& forms) {
  const auto seconds = [](const dtype::LinkCost& link, std::int64_t bytes_of_block) {
    return
        [=](int, int, const Positions& blocks) { return link.at(count(blocks) * bytes_of_block); };
  };
  const auto local =
      tree_seconds(forms.in_node, std::vector<double>(static_cast<std::size_t>(gather.each), 0),
                   seconds(cost.on_node, gather.bytes));
  return tree_seconds(forms.bridge,
                      std::vector<double>(static_cast<std::size_t>(gather.nodes), local),
                      seconds(cost.off_node, gather.each * gather.bytes));
}

ScheduleTraffic::Messages flat_off_node(const RegularGather& gather) {
  const std::int64_t messages = std::int64_t{gather.nodes - 1} * gather.each;
  return {messages, messages * gather.bytes};
}

ScheduleTraffic::Messages hierarchical_off_node(const RegularGather& gather, TreeForm bridge,
                                                std::int64_t chunk_bytes) {
  ScheduleTraffic::Messages out;
  for (int node = 1; node < gather.nodes; ++node) {
    const auto below = count(tree_steps(bridge, gather.nodes, 0, node).blocks);
    const auto bytes = below * gather.each * gather.bytes;
    if (bytes == 0) continue;
    out.messages += chunk_bytes == 0 ? 1 : (bytes + chunk_bytes - 1) / chunk_bytes;
    out.bytes += bytes;
  }
  return out;
}

std::optional<std::int64_t> wins_up_to(const MachineCost& cost, int nodes, int each, TreeForm flat,
                                       std::int64_t smallest, std::int64_t largest) {
  std::optional<std::int64_t> out;
  for (auto bytes = smallest; bytes <= largest; bytes *= 2) {
    const RegularGather gather{nodes, each, bytes};
    double best = 0;
    for (const auto& [local, local_name] : kTreeForms)
      for (const auto& [bridge, bridge_name] : kTreeForms) {
        const auto seconds = hierarchical_gather_seconds(gather, cost, {local, bridge});
        best = best == 0 ? seconds : std::min(best, seconds);
      }
    if (best >= flat_gather_seconds(gather, cost, flat)) break;
    out = bytes;
  }
  return out;
}

}  // namespace halocline::comm
