// SPDX-License-Identifier: BSD-3-Clause
// Finds which ranks share a node.
//
// Best peer: MPI_Comm_split_type answers for the calling rank alone, with a communicator that must
// be freed. Here every rank knows the node of every rank from a value without a communicator. Nodes
// may be emulated on one machine.
#pragma once

#include <mpi.h>

#include <vector>

namespace halocline::comm {

/// Groups the ranks of a communicator by node, from the view of one rank. Nodes are numbered by
/// their lowest rank and may be of different sizes. The ranks of a node need not be consecutive.
class NodeHierarchy {
 public:
  /// Finds the real nodes: ranks that can share memory (MPI_COMM_TYPE_SHARED). Collective.
  explicit NodeHierarchy(MPI_Comm comm);

  /// Emulates nodes of consecutive ranks. `ranks_per_node`: one number for all nodes, of which the
  /// last may have fewer ranks, or one number for each node. Throws ConfigError on all ranks if the
  /// numbers do not fit the ranks. Throws it also if a node spans real ones, since its ranks could
  /// not share memory. Collective.
  NodeHierarchy(MPI_Comm comm, const std::vector<int>& ranks_per_node);

  /// Puts ranks of one color on a node. Use it for a communicator that has the ranks of another one
  /// in a new order, where each rank knows its node. Throws ConfigError on all ranks if a node
  /// spans real ones. Collective.
  static NodeHierarchy by_color(MPI_Comm comm, int color);

  /// Returns nodes of `each` consecutive ranks that need not exist, from the view of rank 0, for
  /// predictions. Local.
  static NodeHierarchy regular(int nodes, int each);

  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(node_of_.size()); }
  int nodes() const { return static_cast<int>(ranks_of_.size()); }

  int node_of(int rank) const { return node_of_[static_cast<std::size_t>(rank)]; }
  /// Returns the node of each rank.
  const std::vector<int>& node_of_ranks() const { return node_of_; }
  /// Tells if `rank` is on the node of this rank. True for this rank itself.
  bool same_node(int rank) const { return node_of(rank) == node_of(rank_); }
  /// Returns the ranks of `node` in ascending order.
  const std::vector<int>& ranks_of(int node) const {
    return ranks_of_[static_cast<std::size_t>(node)];
  }

  /// Tells if these nodes differ from the real ones. MPI does not know emulated nodes. Between
  /// ranks of one real node it uses its path within the node.
  bool emulated() const { return emulated_; }

 private:
  NodeHierarchy() = default;
  void set(std::vector<int> node_of);

  int rank_ = 0;
  std::vector<int> node_of_;                // by rank
  std::vector<std::vector<int>> ranks_of_;  // by node
  bool emulated_ = false;
};

/// Returns the node of each rank if nodes of consecutive ranks are emulated on the real nodes
/// `real`. For `ranks_per_node` see NodeHierarchy. Local.
std::vector<int> emulated_nodes(const std::vector<int>& real,
                                const std::vector<int>& ranks_per_node);

}  // namespace halocline::comm
