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
#include <optional>
#include <vector>

#include "comm/gather/gather_plan.hpp"
#include "comm/gather/node_communicators.hpp"
#include "comm/gather/schedule.hpp"

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

/// Neither copied nor moved.
///
/// Local gathers to the first rank of each node, an exchange among these, which is
/// ceil(log2 nodes) rounds [BHK+97: Bruck et al., as cited by TR14] in the binomial form and one
/// round of direct messages in the linear one, and local broadcasts of what a rank does not have
/// yet.
class AllgatherPlan {
 public:
  /// Errors as of GatherPlan, numbers that differ between ranks are not noticed. Collective.
  /// O(ranks).
  AllgatherPlan(std::shared_ptr<NodeCommunicators> communicators, const AllgatherBuffers& buffers,
                const GatherOptions& options = {});
  AllgatherPlan(const AllgatherPlan&) = delete;
  AllgatherPlan& operator=(const AllgatherPlan&) = delete;

  void run();
  const TreeForms& forms() const { return forms_; }
  const ScheduleTraffic& traffic() const { return traffic_; }

 private:
  std::shared_ptr<NodeCommunicators> communicators_;
  TreeForms forms_;
  std::optional<Schedule> schedule_;  // once its size of pieces is known
  ScheduleTraffic traffic_;
};

}  // namespace halocline::comm
