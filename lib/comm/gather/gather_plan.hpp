// SPDX-License-Identifier: BSD-3-Clause
// Hierarchical gather and scatter, set up once, run again and again.
//
// Best peer: Open MPI's han and Intel MPI's topology-aware gathers go through the node's leader for
// small messages, pack at every level, and reorder at the root. Here every block travels from the
// user's layout to its final place by derived types alone; what the paper could only sketch
// [TR14 section 6], beside what it had to do instead [TR14 section 4].
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "comm/gather/collective_plan.hpp"
#include "comm/gather/node_communicators.hpp"
#include "comm/gather/rooted_tree.hpp"
#include "dtype/datatype.hpp"

namespace halocline::comm {

/// Who puts the blocks into the order of the ranks, where their nodes hold others than consecutive
/// ones.
enum class GatherVariant {
  mpi_gather,              ///< MPI_Gather: no hierarchy of ours
  hier_unpack,             ///< MPI_Unpack at the root, by an indexed-block type
  hier_sendrecv,           ///< MPI_Sendrecv of the root to itself, by that type
  hier_plan,               ///< our pack plan of that type
  hier_forced_contiguous,  ///< MPI_Unpack by a contiguous type where nothing need be reordered
  hier_forced_indexed,     ///< likewise by an indexed-block type
  zero_copy                ///< the types of the messages that the root receives
};

/// All variants with their names, the same on the command line and in results, in the order in
/// which help texts and tables list them.
inline constexpr std::array kGatherVariants{
    std::pair{GatherVariant::mpi_gather, "mpi-gather"},
    std::pair{GatherVariant::hier_unpack, "hier-unpack"},
    std::pair{GatherVariant::hier_sendrecv, "hier-sendrecv"},
    std::pair{GatherVariant::hier_plan, "hier-plan"},
    std::pair{GatherVariant::hier_forced_contiguous, "hier-forced-contiguous"},
    std::pair{GatherVariant::hier_forced_indexed, "hier-forced-indexed"},
    std::pair{GatherVariant::zero_copy, "zero-copy"}};

/// True for those that reorder where nothing need be reordered: only for ranks in the order of
/// their nodes.
constexpr bool is_forced(GatherVariant variant) {
  return variant == GatherVariant::hier_forced_contiguous ||
         variant == GatherVariant::hier_forced_indexed;
}

/// Whether the root moves the blocks again that it has received, if the ranks are in the order of
/// their nodes or are not.
constexpr bool reorders(GatherVariant variant, bool in_node_order) {
  if (in_node_order) return is_forced(variant);
  return variant != GatherVariant::mpi_gather && variant != GatherVariant::zero_copy;
}

/// What ranks contribute or get, in basic elements of endless repetitions of types.
struct RootedBuffers {
  /// Of each rank: `elements` of `type` at `buffer`; on the root also MPI_IN_PLACE, if its block is
  /// where it belongs.
  void* buffer;
  std::int64_t elements;
  MPI_Datatype type;
  /// Of the root, and ignored elsewhere: rank i's block are the root_elements[i] elements behind
  /// those of the ranks before it. One number: of every rank.
  void* root_buffer;
  std::vector<std::int64_t> root_elements;
  MPI_Datatype root_type;
  int root;
  /// Whether the blocks of all ranks have the same number and types of elements, as in MPI_Gather:
  /// then nobody asks the others for theirs, and ranks that differ nevertheless are only noticed by
  /// MPI, or never.
  bool same_signatures = false;
};

namespace detail {
class RootedBlocks;
}

/// Gathers the blocks of all ranks at the root.
///
/// Data go up the tree of rooted_tree(): a rank sends its own block, straight from the user's
/// buffer, and those it has received, from a buffer of signature types, as one message. All buffers
/// are in memory of the host.
class GatherPlan final : public CollectivePlan {
 public:
  /// Collective: it exchanges signatures unless buffers.same_signatures, and makes the
  /// communicators of a new root. Throws ConfigError on all ranks for counts that are negative or
  /// do not match, for types that Halocline does not know, and for a variant that cannot do this:
  /// the forced ones where ranks must be reordered, mpi_gather of parts of types, and MPI_Unpack,
  /// MPI_Sendrecv and mpi_gather of more than their counts can say. O(blocks of the
  /// ranks below this one and pieces of their messages), for each of which the types are cut; see
  /// dtype::element_ranges().
  GatherPlan(std::shared_ptr<NodeCommunicators> communicators, const RootedBuffers& buffers,
             GatherVariant variant, const GatherOptions& options = {});

  const TreeForms& forms() const { return forms_; }

 private:
  void reorder_by(GatherVariant variant, const detail::RootedBlocks& blocks,
                  const std::vector<int>& order, const dtype::MessageBuffer& unordered);

  TreeForms forms_;
  dtype::Datatype reorder_from_, reorder_to_;
};

/// Scatters the blocks of the root to all ranks: a GatherPlan backwards, without a copy.
class ScatterPlan final : public CollectivePlan {
 public:
  /// As of GatherPlan.
  ScatterPlan(std::shared_ptr<NodeCommunicators> communicators, const RootedBuffers& buffers,
              const GatherOptions& options = {});

  const TreeForms& forms() const { return forms_; }

 private:
  TreeForms forms_;
};

}  // namespace halocline::comm
