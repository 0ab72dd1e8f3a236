// SPDX-License-Identifier: BSD-3-Clause
// Plans hierarchical allgathers, set up once and run often.
//
// Best peer: MPI libraries gather to leaders, exchange among the leaders, and broadcast packed
// bytes through temporary buffers. Here every block arrives in its final place on every rank and
// leaves from there.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/gather/collective_plan.hpp"
#include "comm/gather/node_communicators.hpp"
#include "comm/gather/rooted_tree.hpp"

namespace halocline::comm {

/// Describes what a rank contributes, and the place of all contributions. Rank i's block has
/// recv_elements[i] basic elements in the endless repetition of `recvtype`, behind the blocks of
/// the ranks before it. A single number counts for every rank. All ranks give the same numbers;
/// layouts may differ.
struct AllgatherBuffers {
  const void* sendbuf;  ///< MPI_IN_PLACE, then on all ranks: the own block is in its place
  std::int64_t send_elements;
  MPI_Datatype sendtype;
  void* recvbuf;
  std::vector<std::int64_t> recv_elements;
  MPI_Datatype recvtype;
};

/// Gathers all blocks on every rank, in three steps. In each node, the first rank gathers the
/// blocks of its node. The first ranks exchange blocks: in ceil(log2 nodes) rounds [BHK+97: Bruck
/// et al., as cited by TR14] in the binomial form, or in one round of direct messages in the linear
/// form. In each node, the first rank then broadcasts the blocks that a rank lacks.
class AllgatherPlan final : public CollectivePlan {
 public:
  /// Makes the plan. Collective. O(ranks) blocks in each message, at the cost of a block in
  /// GatherPlan.
  /// \throws ConfigError as GatherPlan does. Numbers that differ between ranks are not noticed.
  AllgatherPlan(std::shared_ptr<NodeCommunicators> communicators, const AllgatherBuffers& buffers,
                const GatherOptions& options = {});

  const TreeForms& forms() const { return forms_; }

 private:
  TreeForms forms_;
};

}  // namespace halocline::comm
