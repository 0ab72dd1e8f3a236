// SPDX-License-Identifier: BSD-3-Clause
// Finds real nodes and emulates other ones.
#include "comm/node/node_hierarchy.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include "comm/mpi/communicator.hpp"
#include "support/error.hpp"
#include "support/mpi_check.hpp"

namespace halocline::comm {

namespace {

// Returns the node of each rank if ranks of one color share a node. Nodes are numbered by their
// lowest rank. Collective.
std::vector<int> nodes_of_colors(MPI_Comm comm, int color) {
  int size = 1;
  HALOCLINE_MPI(MPI_Comm_size(comm, &size));
  std::vector<int> colors(static_cast<std::size_t>(size)), node_of;
  HALOCLINE_MPI(MPI_Allgather(&color, 1, MPI_INT, colors.data(), 1, MPI_INT, comm));
  std::unordered_map<int, int> node_of_color;
  for (const int of_rank : colors)
    node_of.push_back(
        node_of_color.try_emplace(of_rank, static_cast<int>(node_of_color.size())).first->second);
  return node_of;
}

// Returns the node of each rank if ranks that can share memory share a node. Nodes are numbered by
// their lowest rank. Collective.
std::vector<int> real_nodes(MPI_Comm comm) {
  int lowest = 0;
  HALOCLINE_MPI(MPI_Comm_rank(comm, &lowest));
  MPI_Comm node = MPI_COMM_NULL;
  HALOCLINE_MPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &lowest, 1, MPI_INT, MPI_MIN, node));
  HALOCLINE_MPI(MPI_Comm_free(&node));
  return nodes_of_colors(comm, lowest);
}

[[noreturn]] void refuse_node(std::size_t a, std::size_t b) {
  throw ConfigError("an emulated node spans real ones (ranks " + std::to_string(a) + " and " +
                    std::to_string(b) +
                    " are on different nodes): give numbers of ranks per node that divide the "
                    "nodes' own, and place consecutive ranks on a node");
}

std::string list(const std::vector<int>& numbers) {
  std::string out;
  for (const int number : numbers) out += (out.empty() ? "" : ", ") + std::to_string(number);
  return out;
}

// Returns the number of ranks of each node, for `ranks` ranks in all.
std::vector<int> sizes_of_nodes(int ranks, const std::vector<int>& ranks_per_node) {
  auto sizes = ranks_per_node;
  const bool positive = std::all_of(sizes.begin(), sizes.end(), [](int size) { return size > 0; });
  if (positive && sizes.size() == 1) {
    const int each = std::min(sizes.front(), ranks);
    sizes.assign(static_cast<std::size_t>((ranks + each - 1) / each), each);
    sizes.back() = ranks - each * (static_cast<int>(sizes.size()) - 1);
  }
  if (!positive || std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) != ranks)
    throw ConfigError("ranks per node do not fit the number of ranks (" + list(ranks_per_node) +
                      " on " + std::to_string(ranks) +
                      " ranks): give one number, or one for each node whose sum is the number of "
                      "ranks");
  return sizes;
}

}  // namespace

std::vector<int> emulated_nodes(const std::vector<int>& real,
                                const std::vector<int>& ranks_per_node) {
  std::vector<int> out;
  int node = 0;
  for (const int size : sizes_of_nodes(static_cast<int>(real.size()), ranks_per_node)) {
    const auto first = out.size();
    out.resize(first + static_cast<std::size_t>(size), node++);
    for (auto rank = first; rank < out.size(); ++rank)
      if (real[rank] != real[first]) refuse_node(first, rank);
  }
  return out;
}

NodeHierarchy::NodeHierarchy(MPI_Comm comm) {
  HALOCLINE_MPI(MPI_Comm_rank(comm, &rank_));
  set(real_nodes(comm));
}

NodeHierarchy::NodeHierarchy(MPI_Comm comm, const std::vector<int>& ranks_per_node)
    : NodeHierarchy(comm) {
  const auto real = node_of_;
  collectively(comm, [&] { set(emulated_nodes(real, ranks_per_node)); });
  emulated_ = node_of_ != real;
}

NodeHierarchy NodeHierarchy::by_color(MPI_Comm comm, int color) {
  NodeHierarchy out(comm);
  const auto real = out.node_of_;
  out.set(nodes_of_colors(comm, color));
  out.emulated_ = out.node_of_ != real;
  for (const auto& ranks : out.ranks_of_)  // the same list on all ranks, so all throw alike
    for (const int rank : ranks) {
      const auto first = static_cast<std::size_t>(ranks.front());
      const auto other = static_cast<std::size_t>(rank);
      if (real[other] != real[first]) refuse_node(first, other);
    }
  return out;
}

NodeHierarchy NodeHierarchy::regular(int nodes, int each) {
  std::vector<int> node_of;
  for (int node = 0; node < nodes; ++node)
    node_of.insert(node_of.end(), static_cast<std::size_t>(each), node);
  NodeHierarchy out;
  out.set(std::move(node_of));
  out.emulated_ = true;
  return out;
}

void NodeHierarchy::set(std::vector<int> node_of) {
  node_of_ = std::move(node_of);
  ranks_of_.clear();
  for (int rank = 0; rank < ranks(); ++rank) {
    const auto node = static_cast<std::size_t>(node_of_[static_cast<std::size_t>(rank)]);
    if (node == ranks_of_.size()) ranks_of_.emplace_back();
    ranks_of_[node].push_back(rank);
  }
}

}  // namespace halocline::comm
