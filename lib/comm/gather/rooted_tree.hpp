// SPDX-License-Identifier: BSD-3-Clause
// Both levels of a hierarchical gather or scatter as one tree over the ranks of a communicator.
//
// Best peer: [TR14 Figure 1] calls one gather after the other, each with a root of its own; as one
// tree, a leader takes what its node and what other nodes send in any order.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "comm/gather/node_communicators.hpp"
#include "comm/gather/schedule.hpp"
#include "comm/gather/tree_steps.hpp"

namespace halocline::comm {

/// The forms of both levels.
struct TreeForms {
  TreeForm in_node = TreeForm::linear;
  TreeForm bridge = TreeForm::linear;
  bool operator==(const TreeForms&) const = default;
};

/// Of 64 to 512 KiB, tried on a node with 2 x 2 ranks where the kernel copies messages, these were
/// the fastest for 256 KiB of each rank, 1.3 to 1.4 times as fast as 64 KiB; for 1 MiB, 512 KiB
/// were. Where both sides copy, 64 to 128 KiB were up to 1.4 times as fast as these.
inline constexpr std::int64_t kChunkBytes = std::int64_t{1} << 18;

/// Of a plan: the same on all ranks.
struct GatherOptions {
  /// Unset: chosen by the sizes of the blocks.
  std::optional<TreeForm> local_form = std::nullopt;
  std::optional<TreeForm> bridge_form = std::nullopt;
  /// A longer message is divided into pieces of that size, as near as whole basic elements of the
  /// mean size and MPI's tags allow, which are passed on as they arrive; 0: never, as far as MPI
  /// can count.
  std::int64_t chunk_bytes = kChunkBytes;
};

/// The forms for blocks of so many bytes together, one from each rank, if `options` leave them
/// open.
TreeForms choose_forms(const NodeHierarchy& nodes, std::int64_t bytes,
                       const GatherOptions& options);

/// How many elements a piece of a message has at most, where all blocks together have so many
/// elements and bytes. Throws ConfigError for a negative size of pieces.
std::int64_t elements_of_piece(std::int64_t elements, std::int64_t bytes,
                               const GatherOptions& options);

/// What one rank of it knows. Ranks are those of the whole communicator.
struct RootedTree {
  struct Child {
    Link link;
    std::vector<int> ranks;  ///< itself and all below it
  };
  std::vector<Child> children;
  std::optional<Link> parent;  ///< none: the root
  std::vector<int> ranks;      ///< this rank first, then those of its children
};

/// Within each node to its leader, and from the leaders to the root: [TR14 section 2] for any root
/// and nodes of any sizes. O(ranks below this one). Collective as NodeCommunicators::bridge().
RootedTree rooted_tree(NodeCommunicators& communicators, int root, const TreeForms& forms);

}  // namespace halocline::comm
