// SPDX-License-Identifier: BSD-3-Clause
// Orders the ranks of a communicator. The order decides if a hierarchical gather has to reorder
// blocks [TR14 section 3].
#pragma once

#include <array>
#include <cstdint>
#include <random>
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

/// Puts `items` into a random order by Fisher and Yates. The order is the same on all ranks whose
/// `random` is in the same state; std::shuffle differs between libraries. O(items).
template <class T>
void shuffle(std::vector<T>& items, std::mt19937_64& random) {
  for (auto left = items.size(); left > 1; --left)
    std::swap(items[left - 1], items[random() % left]);
}

}  // namespace halocline::comm
