// SPDX-License-Identifier: BSD-3-Clause
// Computes costs of trees by the additive cost model of [KT15] section 2.3.
#pragma once

#include <cstdint>

#include "dtype/type_tree.hpp"

namespace halocline::dtype {

/// Holds the cost of each node, about the words that it takes to store, and of a look-up. None is
/// negative. Each entry of a list adds to its node: 1 look-up for a displacement or a length, 2 for
/// a displacement with a length or a child. A RuleBuc costs `triangular`, or `bucket` and a look-up
/// for each bucket.
struct CostModel {
  std::int64_t leaf = 6, vec = 6, idx = 6, idxbuc = 6, strc = 6;
  std::int64_t lookup = 1;
  std::int64_t bucket = 6, triangular = 6;
};

/// Returns the sum of the costs of all nodes. A shared child counts wherever it is used. O(nodes);
/// a node that neighbours in a strc share is visited once.
std::int64_t cost(const TreeNode& tree, const CostModel& costs = {});

}  // namespace halocline::dtype
