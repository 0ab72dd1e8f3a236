// SPDX-License-Identifier: BSD-3-Clause
// The communicators of the two levels of a hierarchy: the ranks of a node, and one rank of each.
//
// Best peer: [TR14 section 2] can cache the local communicators, but splits off a new bridge for
// every call, since MPI does not tell on which node a root is. Here every rank knows all nodes, the
// bridge of a root is split off once, and one serves all roots that are the first of their node.
#pragma once

#include <mpi.h>

#include <map>
#include <memory>

#include "comm/mpi/communicator.hpp"
#include "comm/node/node_hierarchy.hpp"

namespace halocline::comm {

/// Neither copied nor moved; shared by all that use them, and by the communicator as long as it
/// lives. Those of a root that is not the first of its node stay, too: an application that goes
/// through many such roots keeps a communicator for each. The last owner of all that is made here,
/// plans among them, frees it collectively: they are destroyed in one order on all ranks.
class NodeCommunicators {
 public:
  /// Those of `comm` and its real nodes: made at the first call, found as an attribute of `comm` at
  /// all later ones. Collective.
  static std::shared_ptr<NodeCommunicators> of(MPI_Comm comm);
  /// Likewise for other nodes of the same ranks, such as emulated ones.
  static std::shared_ptr<NodeCommunicators> of(MPI_Comm comm, const NodeHierarchy& nodes);

  const NodeHierarchy& nodes() const { return nodes_; }
  /// A duplicate of the communicator.
  const Communicator& all() const { return all_; }
  /// The ranks of this node, ascending.
  const Communicator& local() const { return local_; }

  /// Which of the ranks of `node`, from 0 on, stands for it if `root` is the root: itself on its
  /// own node (errata C.4), else the first one.
  int leader(int node, int root) const;

  /// These leaders, by node; MPI_COMM_NULL on all other ranks. Collective at the first call for
  /// this root, or for any that is the first of its node; O(1) later.
  MPI_Comm bridge(int root);

 private:
  NodeCommunicators(MPI_Comm comm, const NodeHierarchy& nodes);

  NodeHierarchy nodes_;
  Communicator all_, local_;
  std::map<int, Communicator> bridges_;  // by root; -1: all leaders are the first of their node
};

}  // namespace halocline::comm
