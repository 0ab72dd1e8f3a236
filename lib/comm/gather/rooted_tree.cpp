// SPDX-License-Identifier: BSD-3-Clause
#include "comm/gather/rooted_tree.hpp"

#include <algorithm>
#include <string>

namespace halocline::comm {

namespace {

// Appends the ranks of `node` at `positions`, counted from its leader.
void append(std::vector<int>& out, const NodeCommunicators& communicators, int root, int node,
            const Positions& positions) {
  const auto& ranks = communicators.nodes().ranks_of(node);
  const auto leader = static_cast<std::size_t>(communicators.leader(node, root));
  for (auto at = positions.first; at < positions.last; ++at)
    out.push_back(ranks[(leader + static_cast<std::size_t>(at)) % ranks.size()]);
}

}  // namespace

TreeForms choose_forms(const NodeHierarchy& nodes, std::int64_t bytes,
                       const GatherOptions& options) {
  const auto form = [&](int size, int blocks, const std::optional<TreeForm>& given) {
    return given.value_or(choose_form(size, bytes / blocks));
  };
  return {form(nodes.ranks() / nodes.nodes(), nodes.ranks(), options.local_form),
          form(nodes.nodes(), nodes.nodes(), options.bridge_form)};
}

std::int64_t elements_of_piece(std::int64_t elements, std::int64_t bytes,
                               const GatherOptions& options) {
  if (options.chunk_bytes < 0)
    throw ConfigError("negative size of pieces (" + std::to_string(options.chunk_bytes) +
                      " bytes): give 0 for whole messages");
  if (options.chunk_bytes == 0 || bytes == 0) return Schedule::kMostElements;
  // The quotient is a double, since a product of two 64-bit numbers might overflow.
  const auto mean = static_cast<double>(bytes) / static_cast<double>(elements);
  const auto fit = std::min(static_cast<double>(options.chunk_bytes) / mean,
                            static_cast<double>(Schedule::kMostElements));
  // Each piece has a request, and MPI looks through all requests whenever it waits.
  constexpr std::int64_t kMostPieces = 1024;
  return std::clamp(static_cast<std::int64_t>(fit),
                    std::min(elements / kMostPieces + 1, Schedule::kMostElements),
                    Schedule::kMostElements);
}

RootedTree rooted_tree(NodeCommunicators& communicators, int root, const TreeForms& forms) {
  const auto& nodes = communicators.nodes();
  const auto& local = communicators.local();
  const MPI_Comm bridge = communicators.bridge(root);
  const int node = nodes.node_of(nodes.rank()), root_node = nodes.node_of(root);

  RootedTree out;
  out.ranks.push_back(nodes.rank());
  const auto add = [&](const Link& link, std::vector<int> ranks) {
    out.ranks.insert(out.ranks.end(), ranks.begin(), ranks.end());
    out.children.push_back({link, std::move(ranks)});
  };
  const auto steps =
      tree_steps(forms.in_node, local.size(), communicators.leader(node, root), local.rank());
  if (steps.parent) out.parent = Link{local.get(), *steps.parent, false};
  for (const auto& child : steps.children) {
    std::vector<int> ranks;
    append(ranks, communicators, root, node, child.blocks);
    add({local.get(), child.rank, false}, std::move(ranks));
  }
  if (bridge == MPI_COMM_NULL) return out;

  const auto bridge_steps = tree_steps(forms.bridge, nodes.nodes(), root_node, node);
  if (bridge_steps.parent) out.parent = Link{bridge, *bridge_steps.parent, true};
  for (const auto& child : bridge_steps.children) {
    std::vector<int> ranks;
    for (auto at = child.blocks.first; at < child.blocks.last; ++at) {
      const int from = (root_node + at) % nodes.nodes();
      append(ranks, communicators, root, from, {0, static_cast<int>(nodes.ranks_of(from).size())});
    }
    add({bridge, child.rank, true}, std::move(ranks));
  }
  return out;
}

}  // namespace halocline::comm
