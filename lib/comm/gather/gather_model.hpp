// SPDX-License-Identifier: BSD-3-Clause
// What gathers cost in the alpha-beta model.
//
// Best peer: MPI libraries switch algorithms at thresholds from tuning runs and keep the reasons to
// themselves; here the trees that run are the trees that are costed, for any number of nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "comm/gather/rooted_tree.hpp"

namespace halocline::comm {

/// A message of b bytes takes alpha + b * beta, at its sender and at its receiver, each of which
/// handles one at a time.
struct LinkCost {
  double alpha_s = 0;
  double beta_s_per_byte = 0;
  double at(std::int64_t bytes) const {
    return alpha_s + beta_s_per_byte * static_cast<double>(bytes);
  }
};

struct MachineCost {
  LinkCost on_node, off_node;
};

/// Ranks that contribute equally much, of `nodes` nodes with `each` ranks.
struct RegularGather {
  int nodes, each;
  std::int64_t bytes;  ///< of each rank
};

/// When the root, rank 0, has everything: a tree of that form over all ranks, which knows no nodes.
/// `node_of_rank`: where the ranks are, in the order of their nodes unless given. O(ranks).
double flat_gather_seconds(const RegularGather& gather, const MachineCost& cost, TreeForm form,
                           const std::vector<int>& node_of_rank = {});

/// Likewise of the tree of rooted_tree(), where messages are not divided: [TR14 section 2].
/// O(ranks).
double hierarchical_gather_seconds(const RegularGather& gather, const MachineCost& cost,
                                   const TreeForms& forms);

/// Messages and bytes between nodes: of a linear gather that knows no nodes; and of rooted_tree(),
/// whose messages are divided as GatherOptions::chunk_bytes says, if the elements are bytes.
ScheduleTraffic::Messages flat_off_node(const RegularGather& gather);
ScheduleTraffic::Messages hierarchical_off_node(const RegularGather& gather, TreeForm bridge,
                                                std::int64_t chunk_bytes = kChunkBytes);

/// Up to which size, from `smallest` on in powers of two up to `largest` bytes of each rank, the
/// best hierarchical gather is faster than the given flat one; none if it is not at `smallest`.
std::optional<std::int64_t> wins_up_to(const MachineCost& cost, int nodes, int each, TreeForm flat,
                                       std::int64_t smallest, std::int64_t largest);

}  // namespace halocline::comm
