// SPDX-License-Identifier: BSD-3-Clause
// Plans hierarchical gathers and scatters, set up once and run often.
//
// Best peer: Open MPI's han and Intel MPI's topology-aware gathers use the node's leader for small
// messages, pack at every level, and reorder at the root. Here derived types alone move every block
// from the user's layout to its final place. The paper could only sketch this [TR14 section 6]; its
// own variants [TR14 section 4] are here, too.
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

/// Names who puts the blocks into the order of the ranks, if the ranks of a node are not
/// consecutive.
enum class GatherVariant {
  mpi_gather,              ///< MPI_Gather, without a hierarchy of ours
  hier_unpack,             ///< MPI_Unpack at the root, by an indexed-block type
  hier_sendrecv,           ///< MPI_Sendrecv of the root to itself, by an indexed-block type
  hier_plan,               ///< our pack plan of an indexed-block type
  hier_forced_contiguous,  ///< MPI_Unpack by a contiguous type, with ranks in order
  hier_forced_indexed,     ///< MPI_Unpack by an indexed-block type, with ranks in order
  zero_copy                ///< the types of the messages that the root receives
};

/// Lists all variants with their names on the command line and in results, in the order of help
/// texts and tables.
inline constexpr std::array kGatherVariants{
    std::pair{GatherVariant::mpi_gather, "mpi-gather"},
    std::pair{GatherVariant::hier_unpack, "hier-unpack"},
    std::pair{GatherVariant::hier_sendrecv, "hier-sendrecv"},
    std::pair{GatherVariant::hier_plan, "hier-plan"},
    std::pair{GatherVariant::hier_forced_contiguous, "hier-forced-contiguous"},
    std::pair{GatherVariant::hier_forced_indexed, "hier-forced-indexed"},
    std::pair{GatherVariant::zero_copy, "zero-copy"}};

/// Tells if a variant reorders although the order is right. Such variants need ranks in the order
/// of their nodes.
constexpr bool is_forced(GatherVariant variant) {
  return variant == GatherVariant::hier_forced_contiguous ||
         variant == GatherVariant::hier_forced_indexed;
}

/// Tells if the root moves received blocks again. `in_node_order` says if the ranks are in the
/// order of their nodes.
constexpr bool reorders(GatherVariant variant, bool in_node_order) {
  if (in_node_order) return is_forced(variant);
  return variant != GatherVariant::mpi_gather && variant != GatherVariant::zero_copy;
}

/// Describes what ranks contribute or get, in basic elements of endless repetitions of types.
struct RootedBuffers {
  /// Is the block of each rank: `elements` of `type` at `buffer`. On the root, MPI_IN_PLACE if its
  /// block is already in its place.
  void* buffer;
  std::int64_t elements;
  MPI_Datatype type;
  /// Is the buffer of the root, ignored elsewhere. Rank i's block has root_elements[i] elements,
  /// behind the blocks of the ranks before it. A single number counts for every rank.
  void* root_buffer;
  std::vector<std::int64_t> root_elements;
  MPI_Datatype root_type;
  int root;
  /// Says that the blocks of all ranks have the same number and types of elements, as in
  /// MPI_Gather. No rank then asks other ranks for their signatures. Only MPI may notice ranks that
  /// differ, or nobody does.
  bool same_signatures = false;
};

namespace detail {
class RootedBlocks;
}

/// Gathers the blocks of all ranks at the root.
///
/// Data go up the tree of rooted_tree(). A rank sends its own block and all blocks that it has
/// received, as one message. Its own block leaves from the user's buffer, received blocks from a
/// buffer of signature types. All buffers are in host memory.
class GatherPlan final : public CollectivePlan {
 public:
  /// Makes the plan. Collective: exchanges signatures unless buffers.same_signatures, and makes the
  /// communicators of a new root. O(blocks of the ranks below this one, and pieces of their
  /// messages). Types are cut for each of them; dtype::element_ranges() says at which cost.
  /// \throws ConfigError on all ranks for counts that are negative or do not match, and for types
  /// that Halocline does not know. Also for an impossible variant. The forced variants need ranks
  /// in the order of their nodes; mpi_gather needs whole instances. MPI_Unpack, MPI_Sendrecv and
  /// mpi_gather need counts that fit their `int`.
  GatherPlan(std::shared_ptr<NodeCommunicators> communicators, const RootedBuffers& buffers,
             GatherVariant variant, const GatherOptions& options = {});

  const TreeForms& forms() const { return forms_; }

 private:
  void reorder_by(GatherVariant variant, const detail::RootedBlocks& blocks,
                  const std::vector<int>& order, const MessageBuffer& unordered);

  TreeForms forms_;
  dtype::Datatype reorder_from_, reorder_to_;
};

/// Scatters the blocks of the root to all ranks: a GatherPlan backwards, without a copy.
class ScatterPlan final : public CollectivePlan {
 public:
  /// Makes the plan; errors and cost are those of GatherPlan's constructor.
  ScatterPlan(std::shared_ptr<NodeCommunicators> communicators, const RootedBuffers& buffers,
              const GatherOptions& options = {});

  const TreeForms& forms() const { return forms_; }

 private:
  TreeForms forms_;
};

}  // namespace halocline::comm
