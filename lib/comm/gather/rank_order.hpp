// SPDX-License-Identifier: BSD-3-Clause
// Orders the ranks of a communicator. The order decides if a hierarchical gather has to reorder
// blocks [TR14 section 3].
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "comm/node/node_hierarchy.hpp"

namespace halocline::comm {

enum class RankOrder {
  ordered,      ///< unchanged: consecutive ranks on a node, if the nodes have them like this
  reversed,     ///< the last one first
  round_robin,  ///< the first rank of each node, then the second of each, ...
  random        ///< shuffled
};

/// Lists all orders with their names on the command line and in results.
inline constexpr std::array kRankOrders{
    std::pair{RankOrder::ordered, "ordered"}, std::pair{RankOrder::reversed, "reversed"},
    std::pair{RankOrder::round_robin, "round-robin"}, std::pair{RankOrder::random, "random"}};

/// Returns the ranks of `nodes` in an order: the i-th entry is to become rank i. `seed` is the seed
/// of a random order. Pure. O(ranks).
std::vector<int> ranks_in_order(RankOrder order, const NodeHierarchy& nodes, std::int64_t seed);

}  // namespace halocline::comm
