// SPDX-License-Identifier: BSD-3-Clause
// Keeps the communicators of both levels of a hierarchy: the ranks of a node, and one rank of each
// node.
//
// Best peer: [TR14 section 2] can cache the local communicators. It splits off a new bridge for
// every call, since MPI does not say on which node a root is. Here every rank knows all nodes, and
// the bridge of a root is split off once. One bridge serves all roots that are the first rank of
// their node.
#pragma once

#include <mpi.h>

#include <map>
#include <memory>

#include "comm/mpi/communicator.hpp"
#include "comm/node/node_hierarchy.hpp"

namespace halocline::comm {

/// Holds the communicators of both levels for one communicator and its nodes. Neither copied nor
/// moved. Shared by all users; the communicator owns a share, too, as long as it lives.
///
/// A bridge stays after its call. An application with many roots that are not the first of their
/// node keeps a communicator for each of these roots. The last owner frees everything collectively,
/// plans included: all ranks destroy the owners in the same order.
class NodeCommunicators {
 public:
  /// Returns the communicators of `comm` and its real nodes. The first call makes them, later calls
  /// find them as an attribute of `comm`. Collective.
  static std::shared_ptr<NodeCommunicators> of(MPI_Comm comm);
  /// Returns the communicators of `comm` for other nodes of the same ranks, such as emulated nodes.
  /// The first call for these nodes makes them. Collective.
  static std::shared_ptr<NodeCommunicators> of(MPI_Comm comm, const NodeHierarchy& nodes);

  const NodeHierarchy& nodes() const { return nodes_; }
  /// Returns a duplicate of the communicator.
  const Communicator& all() const { return all_; }
  /// Returns the communicator of the ranks of this node, in ascending order.
  const Communicator& local() const { return local_; }

  /// Returns the rank that stands for `node` if `root` is the root, counted from 0 among the ranks
  /// of `node`. This is `root` itself on the root's node (errata C.4), else the first rank.
  int leader(int node, int root) const;

  /// Returns the communicator of the leaders of all nodes, in the order of the nodes. Returns
  /// MPI_COMM_NULL on all other ranks. Collective at the first call for this root; all roots that
  /// are the first of their node count as one. O(1) later.
  MPI_Comm bridge(int root);

 private:
  NodeCommunicators(MPI_Comm comm, const NodeHierarchy& nodes);

  NodeHierarchy nodes_;
  Communicator all_, local_;
  std::map<int, Communicator> bridges_;  // by root; -1: the bridge of the first ranks of all nodes
};

}  // namespace halocline::comm
