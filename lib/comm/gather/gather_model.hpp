// SPDX-License-Identifier: BSD-3-Clause
// Predicts what gathers cost in the alpha-beta model.
//
// Best peer: MPI libraries switch algorithms at thresholds from tuning runs and do not publish the
// reasons. Here the trees that run are the trees that are costed, for any number of nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "comm/gather/rooted_tree.hpp"
#include "dtype/model/message_cost.hpp"

namespace halocline::comm {

/// Holds the cost of messages on a node and between nodes. A message takes this time at its sender
/// and at its receiver. Each end handles one message at a time.
struct MachineCost {
  dtype::LinkCost on_node, off_node;
};

/// Describes a gather of equal blocks from `nodes` nodes with `each` ranks.
struct RegularGather {
  int nodes, each;
  std::int64_t bytes;  ///< bytes of each rank
};

/// Returns the seconds until the root, rank 0, has all blocks, by a tree of `form` over all ranks
/// that ignores the nodes. `node_of_rank` is the node of each rank; by default the ranks are in the
/// order of their nodes. O(ranks).
double flat_gather_seconds(const RegularGather& gather, const MachineCost& cost, TreeForm form,
                           const std::vector<int>& node_of_rank = {});

/// Returns the seconds until the root, rank 0, has all blocks by rooted_tree(), with undivided
/// messages: [TR14 section 2]. O(ranks).
double hierarchical_gather_seconds(const RegularGather& gather, const MachineCost& cost,
                                   const TreeForms& forms);

/// Returns the messages and bytes between nodes for a linear gather that ignores the nodes.
ScheduleTraffic::Messages flat_off_node(const RegularGather& gather);
/// Returns the messages and bytes between nodes for rooted_tree(). Messages are divided by
/// `chunk_bytes` (GatherOptions::chunk_bytes), for elements of one byte.
ScheduleTraffic::Messages hierarchical_off_node(const RegularGather& gather, TreeForm bridge,
                                                std::int64_t chunk_bytes = kChunkBytes);

/// Returns the largest size of a block, in bytes, up to which the best hierarchical gather beats
/// the flat one. Tries powers of two times `smallest`, up to `largest`. Returns nothing if the flat
/// gather wins at `smallest`.
std::optional<std::int64_t> wins_up_to(const MachineCost& cost, int nodes, int each, TreeForm flat,
                                       std::int64_t smallest, std::int64_t largest);

}  // namespace halocline::comm
