// SPDX-License-Identifier: BSD-3-Clause
// Orders in which a communicator may have the ranks of its nodes: what decides whether a
// hierarchical gather has to reorder [TR14 section 3].
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "comm/node/node_hierarchy.hpp"

namespace halocline::comm {

enum class RankOrder {
  ordered,      ///< as they are: consecutive ranks on a node, if the nodes have them so
  reversed,     ///< the last one first
  round_robin,  ///< the first rank of each node, then the second of each, ...
  random        ///< shuffled
};

/// All orders with their names on the command line and in results.
inline constexpr std::array kRankOrders{
    std::pair{RankOrder::ordered, "ordered"}, std::pair{RankOrder::reversed, "reversed"},
    std::pair{RankOrder::round_robin, "round-robin"}, std::pair{RankOrder::random, "random"}};

/// The ranks of `nodes` in that order: the i-th is to become rank i. `seed` of a random order. A
/// pure function. O(ranks).
std::vector<int> ranks_in_order(RankOrder order, const NodeHierarchy& nodes, std::int64_t seed);

/// Puts `items` into a random order, the same on all ranks whose `random` is in the same state:
/// std::shuffle differs between libraries. Fisher and Yates. O(items).
template <class T>
void shuffle(std::vector<T>& items, std::mt19937_64& random) {
  for (auto left = items.size(); left > 1; --left)
    std::swap(items[left - 1], items[random() % left]);
}

}  // namespace halocline::comm
