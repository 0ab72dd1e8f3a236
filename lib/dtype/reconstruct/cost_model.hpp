// SPDX-License-Identifier: BSD-3-Clause
// The additive cost model of [KT15] section 2.3.
#pragma once

#include <cstdint>

#include "dtype/type_tree.hpp"

namespace halocline::dtype {

/// What each node costs, about the words that it takes to store, and what each entry of a list adds
/// to it: 1 look-up for a displacement or a length, 2 for a displacement with a length or a child.
/// None is negative. A RuleBuc costs `triangular`, or `bucket` and a look-up for each bucket.
struct CostModel {
  std::int64_t leaf = 6, vec = 6, idx = 6, idxbuc = 6, strc = 6;
  std::int64_t lookup = 1;
  std::int64_t bucket = 6, triangular = 6;
};

/// The sum over all nodes; a child that is shared counts where it is used. O(nodes), those
/// that neighbours in a strc share once.
std::int64_t cost(const TreeNode& tree, const CostModel& costs = {});

}  // namespace halocline::dtype
