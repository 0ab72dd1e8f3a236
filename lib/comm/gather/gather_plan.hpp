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
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "comm/gather/node_communicators.hpp"
#include "comm/gather/rooted_tree.hpp"
#include "comm/gather/schedule.hpp"
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
  /// Whether the blocks of all ranks have the same signature, as in MPI_Gather: then nobody has to
  /// ask the others for theirs.
  bool same_signatures = false;
};

namespace detail {
class RootedBlocks;
}

/// Gathers the blocks of all ranks at the root. Neither copied nor moved.
///
/// Data go up the tree of rooted_tree(): a rank sends its own block, straight from the user's
/// buffer, and those it has received, from a buffer of signature types, as one message.
class GatherPlan {
 public:
  /// The buffers must stay where they are; types may be freed. Collective: it exchanges signatures
  /// unless buffers.same_signatures, and makes the communicators of a new root. Throws ConfigError
  /// on all ranks for counts that are negative or do not match, for types that Halocline does not
  /// know, and for a variant that cannot do this: the forced ones where ranks must be reordered,
  /// mpi_gather of parts of types. O(ranks below this one and the trees of the types).
  GatherPlan(std::shared_ptr<NodeCommunicators> communicators, const RootedBuffers& buffers,
             GatherVariant variant, const GatherOptions& options = {});
  GatherPlan(const GatherPlan&) = delete;
  GatherPlan& operator=(const GatherPlan&) = delete;

  /// Gathers what is in the buffers now; returns when this rank's are free. Collective; plans of
  /// one communicator run in one order on all ranks.
  void run();

  const TreeForms& forms() const { return forms_; }
  /// Of the last run of this rank.
  const ScheduleTraffic& traffic() const { return traffic_; }

 private:
  void reorder_by(GatherVariant variant, const detail::RootedBlocks& blocks);

  std::shared_ptr<NodeCommunicators> communicators_;
  TreeForms forms_;
  std::vector<std::byte> passed_on_, unordered_;
  std::optional<Schedule> schedule_;  // once its size of pieces is known
  dtype::Datatype reorder_from_, reorder_to_;
  std::function<void()> last_;  // what follows the schedule
  ScheduleTraffic traffic_;
};

/// Scatters the blocks of the root to all ranks: a GatherPlan backwards, without a copy.
class ScatterPlan {
 public:
  /// As of GatherPlan.
  ScatterPlan(std::shared_ptr<NodeCommunicators> communicators, const RootedBuffers& buffers,
              const GatherOptions& options = {});
  ScatterPlan(const ScatterPlan&) = delete;
  ScatterPlan& operator=(const ScatterPlan&) = delete;

  void run();
  const TreeForms& forms() const { return forms_; }
  const ScheduleTraffic& traffic() const { return traffic_; }

 private:
  std::shared_ptr<NodeCommunicators> communicators_;
  TreeForms forms_;
  std::vector<std::byte> passed_on_;
  std::optional<Schedule> schedule_;  // once its size of pieces is known
  ScheduleTraffic traffic_;
};

}  // namespace halocline::comm
