// SPDX-License-Identifier: BSD-3-Clause
// Hierarchical allgather, set up once, run again and again.
//
// Best peer: MPI libraries gather to leaders, exchange among these, and broadcast packed bytes
// through temporary buffers; here every block arrives in its final place on every rank and leaves
// from there.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/gather/collective_plan.hpp"
#include "comm/gather/node_communicators.hpp"
#include "comm/gather/rooted_tree.hpp"

namespace halocline::comm {

/// What a rank contributes, and where all ranks' contributions go: rank i's block are the
/// recv_elements[i] basic elements behind those of the ranks before it in the endless repetition of
/// `recvtype`. One number: of every rank. All ranks give the same numbers; layouts may differ.
struct AllgatherBuffers {
  const void* sendbuf;  ///< MPI_IN_PLACE on all ranks: the own block is where it belongs
  std::int64_t send_elements;
  MPI_Datatype sendtype;
  void* recvbuf;
  std::vector<std::int64_t> recv_elements;
  MPI_Datatype recvtype;
};

/// Local gathers to the first rank of each node, an exchange among these, which is
/// ceil(log2 nodes) rounds [BHK+97: Bruck et al., as cited by TR14] in the binomial form and one
/// round of direct messages in the linear one, and local broadcasts of what a rank does not have
/// yet.
class AllgatherPlan final : public CollectivePlan {
 public:
  /// Errors as of GatherPlan; numbers that differ between ranks are not noticed. Collective.
  /// O(ranks) blocks in each message, and as for GatherPlan for each.
  AllgatherPlan(std::shared_ptr<NodeCommunicators> communicators, const AllgatherBuffers& buffers,
                const GatherOptions& options = {});

  const TreeForms& forms() const { return forms_; }

 private:
  TreeForms forms_;
};

}  // namespace halocline::comm
