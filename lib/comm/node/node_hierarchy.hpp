// SPDX-License-Identifier: BSD-3-Clause
// Which ranks share a node.
//
// Best peer: MPI_Comm_split_type answers for the calling rank alone, with a communicator to be
// freed; here every rank knows the node of every rank, from a value that holds none, and nodes may
// be emulated on one machine.
#pragma once

#include <mpi.h>

#include <vector>

namespace halocline::comm {

/// The ranks of a communicator by node, from the view of one of them. Nodes are numbered by their
/// lowest rank and may be of different sizes; their ranks need not be consecutive.
class NodeHierarchy {
 public:
  /// The real nodes: ranks that can share memory (MPI_COMM_TYPE_SHARED). Collective.
  explicit NodeHierarchy(MPI_Comm comm);

  /// Emulated nodes of consecutive ranks. `ranks_per_node`: one number for all of them, of which
  /// the last may have fewer, or one for each node. Throws ConfigError on all ranks if the numbers
  /// do not fit the ranks, or if a node spans real ones, since its ranks could not share memory.
  /// Collective.
  NodeHierarchy(MPI_Comm comm, const std::vector<int>& ranks_per_node);

  /// Ranks of one color share a node: for a communicator whose ranks are those of another one in a
  /// new order, where each rank knows its node. Throws ConfigError on all ranks if a node spans
  /// real ones. Collective.
  static NodeHierarchy by_color(MPI_Comm comm, int color);

  /// Nodes that need not be here, of `each` consecutive ranks, from the view of the first one: what
  /// would be there, for predictions. Local.
  static NodeHierarchy regular(int nodes, int each);

  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(node_of_.size()); }
  int nodes() const { return static_cast<int>(ranks_of_.size()); }

  int node_of(int rank) const { return node_of_[static_cast<std::size_t>(rank)]; }
  /// The node of each rank.
  const std::vector<int>& node_of_ranks() const { return node_of_; }
  /// Whether `rank` is on the node of this one; itself is.
  bool same_node(int rank) const { return node_of(rank) == node_of(rank_); }
  /// Ascending.
  const std::vector<int>& ranks_of(int node) const {
    return ranks_of_[static_cast<std::size_t>(node)];
  }

  /// Whether these are other nodes than the real ones: MPI does not know of them, and takes its way
  /// between ranks of one real node all the same.
  bool emulated() const { return emulated_; }

 private:
  NodeHierarchy() = default;
  void set(std::vector<int> node_of);

  int rank_ = 0;
  std::vector<int> node_of_;                // by rank
  std::vector<std::vector<int>> ranks_of_;  // by node
  bool emulated_ = false;
};

/// The node of each rank if nodes of consecutive ranks are emulated on the real nodes `real`; see
/// NodeHierarchy. Local.
std::vector<int> emulated_nodes(const std::vector<int>& real,
                                const std::vector<int>& ranks_per_node);

}  // namespace halocline::comm
