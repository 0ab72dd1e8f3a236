// SPDX-License-Identifier: BSD-3-Clause
// Makes one tree of both levels of a hierarchical gather or scatter, over the ranks of a
// communicator.
//
// Best peer: [TR14 Figure 1] calls one gather after the other, each with its own root. In one tree,
// a leader receives from its node and from other nodes in any order.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "comm/gather/node_communicators.hpp"
#include "comm/gather/schedule.hpp"
#include "comm/gather/tree_steps.hpp"

namespace halocline::comm {

/// Holds the tree forms of both levels.
struct TreeForms {
  TreeForm in_node = TreeForm::linear;
  TreeForm bridge = TreeForm::linear;
  bool operator==(const TreeForms&) const = default;
};

/// Sets the default size of a piece: 256 KiB.
///
/// Sizes of 64 to 512 KiB were tried on a node with 2 x 2 ranks. With messages copied by the
/// kernel, 256 KiB was fastest for blocks of 256 KiB: 1.3 to 1.4 times as fast as 64 KiB. For
/// blocks of 1 MiB, 512 KiB was fastest. With copies by both sides, 64 to 128 KiB were up to 1.4
/// times as fast as 256 KiB.
inline constexpr std::int64_t kChunkBytes = std::int64_t{1} << 18;

/// Holds the options of a plan, the same on all ranks.
struct GatherOptions {
  /// Sets the tree form of each level; by default the sizes of the blocks decide.
  std::optional<TreeForm> local_form = std::nullopt;
  std::optional<TreeForm> bridge_form = std::nullopt;
  /// Divides longer messages into pieces of this size in bytes, which are passed on as they arrive.
  /// Whole elements of the mean size and the limits of MPI's tags make the real size differ. 0:
  /// divides only what MPI cannot count.
  std::int64_t chunk_bytes = kChunkBytes;
};

/// Chooses the forms that `options` leave open. `bytes` are the bytes of all blocks together, one
/// block from each rank.
TreeForms choose_forms(const NodeHierarchy& nodes, std::int64_t bytes,
                       const GatherOptions& options);

/// Returns the largest number of elements of a piece. All blocks together have `elements` basic
/// elements and `bytes` bytes.
/// \throws ConfigError if options.chunk_bytes is negative.
std::int64_t elements_of_piece(std::int64_t elements, std::int64_t bytes,
                               const GatherOptions& options);

/// Describes what one rank knows of a tree. Ranks are numbers in the whole communicator.
struct RootedTree {
  struct Child {
    Link link;
    std::vector<int> ranks;  ///< the child and all ranks below it
  };
  std::vector<Child> children;
  std::optional<Link> parent;  ///< none at the root
  std::vector<int> ranks;      ///< this rank first, then the ranks of its children
};

/// Returns the tree in which blocks go from the ranks of each node to the leader, and from the
/// leaders to the root. This is [TR14 section 2] for any root and nodes of any sizes. O(ranks below
/// this one). Collective when NodeCommunicators::bridge() is.
RootedTree rooted_tree(NodeCommunicators& communicators, int root, const TreeForms& forms);

}  // namespace halocline::comm
