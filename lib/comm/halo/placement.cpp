// SPDX-License-Identifier: BSD-3-Clause
// Places ranks in a grid: a quadratic assignment by orders of positions and by swaps.
#include "comm/halo/placement.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <utility>

#include "comm/halo/halo_spec.hpp"

namespace halocline::comm {

namespace {

using Numbers = std::vector<int>;

/// Holds the points that each rank sends to each neighbour, in some directions. For each region
/// sent in a direction, a region of the same size comes back in the opposite one.
class HaloGraph {
 public:
  struct Edge {
    int to;
    std::int64_t points;
  };

  HaloGraph(const Decomposition& decomposition, const PerAxis<std::int64_t>& radius,
            const DirectionSet& directions) {
    for (int rank = 0; rank < decomposition.size(); ++rank) {
      const HaloSpec halo{decomposition.owned(rank).extent, radius};
      for_each_direction([&](Direction d) {
        if (!directions.contains(d)) return;
        const auto to = decomposition.neighbor(rank, d);
        if (to && *to != rank) edges_.push_back({*to, halo.send_box(d).points()});
      });
      ends_.push_back(edges_.size());
    }
  }

  std::span<const Edge> edges_of(std::size_t rank) const {
    const auto begin = rank == 0 ? 0 : ends_[rank - 1];
    return std::span(edges_).subspan(begin, ends_[rank] - begin);
  }
  std::size_t ranks() const { return ends_.size(); }

 private:
  std::vector<Edge> edges_;
  std::vector<std::size_t> ends_;
};

/// Assigns a node to each rank of a graph, and keeps the cost of that.
class Labels {
 public:
  Labels(const HaloGraph& graph, Numbers node_of)
      : graph_(&graph),
        node_of_(std::move(node_of)),
        sent_(static_cast<std::size_t>(*std::max_element(node_of_.begin(), node_of_.end()) + 1)) {
    for (std::size_t rank = 0; rank < graph.ranks(); ++rank)
      for (const auto& edge : graph.edges_of(rank))
        if (node(edge.to) != node_of_[rank]) sent_by(node_of_[rank]) += edge.points;
  }

  OffNodePoints cost() const {
    return {*std::max_element(sent_.begin(), sent_.end()),
            std::accumulate(sent_.begin(), sent_.end(), std::int64_t{0})};
  }
  const Numbers& node_of() const { return node_of_; }

  void swap(std::size_t a, std::size_t b) {
    const int of_a = node_of_[a];
    move(a, node_of_[b]);
    move(b, of_a);
  }

 private:
  int node(int rank) const { return node_of_[static_cast<std::size_t>(rank)]; }
  std::int64_t& sent_by(int node) { return sent_[static_cast<std::size_t>(node)]; }

  void move(std::size_t rank, int to) {
    const int from = node_of_[rank];
    for (const auto& edge : graph_->edges_of(rank)) {
      const int other = node(edge.to);
      for (const auto& [own, sign] : {std::pair{from, -1}, std::pair{to, 1}}) {
        if (other == own) continue;
        sent_by(own) += sign * edge.points;
        sent_by(other) += sign * edge.points;
      }
    }
    node_of_[rank] = to;
  }

  const HaloGraph* graph_;
  Numbers node_of_;
  std::vector<std::int64_t> sent_;  // by node
};

// ---- Orders of positions: each node in turn takes the next positions, one for each of its ranks

// Returns the positions tile by tile. Tiles and the positions in a tile are in order of x, y, z.
Numbers in_tiles(const Decomposition& natural, const Int3& tile) {
  const auto& grid = natural.ranks();
  const auto tiles = [&](std::size_t axis) { return (grid[axis] + tile[axis] - 1) / tile[axis]; };
  std::vector<std::int64_t> tile_of;
  for (int position = 0; position < natural.size(); ++position) {
    const auto at = natural.coordinates(position);
    tile_of.push_back((at[2] / tile[2] * tiles(1) + at[1] / tile[1]) * tiles(0) + at[0] / tile[0]);
  }
  Numbers order(tile_of.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return tile_of[static_cast<std::size_t>(a)] < tile_of[static_cast<std::size_t>(b)];
  });
  return order;
}

// Returns the axis along which `positions` reach farthest, in points.
std::size_t longest_axis(const Decomposition& natural, std::span<const int> positions) {
  Int3 reach{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto [first, last] = std::minmax_element(
        positions.begin(), positions.end(),
        [&](int a, int b) { return natural.coordinates(a)[axis] < natural.coordinates(b)[axis]; });
    reach[axis] = (natural.coordinates(*last)[axis] - natural.coordinates(*first)[axis] + 1) *
                  natural.global()[axis] / natural.ranks()[axis];
  }
  return static_cast<std::size_t>(std::max_element(reach.begin(), reach.end()) - reach.begin());
}

// Bisects positions along their longest axis, again and again. Each part gets about half of the
// ranks of the nodes. `sizes`: ranks of each node, in the order of the nodes.
void bisect(const Decomposition& natural, std::span<int> positions, std::span<const int> sizes) {
  if (sizes.size() < 2) return;
  const auto axis = longest_axis(natural, positions);
  std::stable_sort(positions.begin(), positions.end(), [&](int a, int b) {
    return natural.coordinates(a)[axis] < natural.coordinates(b)[axis];
  });
  auto ranks = static_cast<std::size_t>(sizes[0]);
  std::size_t nodes = 1;
  for (; nodes + 1 < sizes.size(); ++nodes) {
    const auto more = ranks + static_cast<std::size_t>(sizes[nodes]);
    if (2 * more > positions.size()) break;
    ranks = more;
  }
  bisect(natural, positions.first(ranks), sizes.first(nodes));
  bisect(natural, positions.subspan(ranks), sizes.subspan(nodes));
}

// Returns the orders to begin with. Each tile shape of as many positions as the largest node has
// ranks gives one order. Nodes of unequal sizes add a bisection, a small grid adds random orders.
std::vector<Numbers> orders(const Decomposition& natural, const Numbers& sizes) {
  constexpr int kFew = 16, kShuffles = 16;
  std::vector<Numbers> out;
  const auto& grid = natural.ranks();
  const int largest = *std::max_element(sizes.begin(), sizes.end());
  for (const auto& tile : rank_grids(largest))
    if (tile[0] <= grid[0] && tile[1] <= grid[1] && tile[2] <= grid[2])
      out.push_back(in_tiles(natural, tile));
  if (std::any_of(sizes.begin(), sizes.end(), [&](int size) { return size < largest; })) {
    out.push_back(in_tiles(natural, grid));
    bisect(natural, out.back(), sizes);
  }
  std::mt19937 random;  // the same on all ranks
  for (int i = 0; natural.size() <= kFew && i < kShuffles; ++i) {
    out.push_back(in_tiles(natural, grid));
    std::shuffle(out.back().begin(), out.back().end(), random);
  }
  return out;
}

// Returns the node of each position.
Numbers dealt_out(const Numbers& order, const Numbers& sizes) {
  Numbers out(order.size());
  auto position = order.begin();
  for (int node = 0; node < std::ssize(sizes); ++node)
    for (int i = 0; i < sizes[static_cast<std::size_t>(node)]; ++i)
      out[static_cast<std::size_t>(*position++)] = node;
  return out;
}

// ---- Search over orders and swaps

void swap_while_better(Labels& labels) {
  auto least = labels.cost();
  const auto ranks = labels.node_of().size();
  for (bool better = true; better;) {
    better = false;
    for (std::size_t a = 1; a < ranks; ++a)
      for (std::size_t b = 0; b < a; ++b) {
        if (labels.node_of()[a] == labels.node_of()[b]) continue;
        labels.swap(a, b);
        const auto cost = labels.cost();
        if (cost < least) {
          least = cost;
          better = true;
        } else {
          labels.swap(a, b);
        }
      }
  }
}

// Returns the position of each rank. The ranks of a node take the positions of the node in order.
Numbers positions_of(const Numbers& node_of, const Numbers& node_at) {
  std::vector<Numbers> by_node(node_of.size());
  for (auto position = node_at.size(); position-- > 0;)
    by_node[static_cast<std::size_t>(node_at[position])].push_back(static_cast<int>(position));
  Numbers out;
  for (const int node : node_of) {
    auto& left = by_node[static_cast<std::size_t>(node)];
    out.push_back(left.back());
    left.pop_back();
  }
  return out;
}

Decomposition map_by_node(const Decomposition& natural, const PerAxis<std::int64_t>& radius,
                          const DirectionSet& directions, const Numbers& node_of) {
  constexpr int kMostToSwap = 64;
  Numbers sizes(static_cast<std::size_t>(*std::max_element(node_of.begin(), node_of.end()) + 1));
  for (const int node : node_of) ++sizes[static_cast<std::size_t>(node)];

  const HaloGraph graph(natural, radius, directions);
  Labels best(graph, node_of);
  for (const auto& order : orders(natural, sizes)) {
    Labels labels(graph, dealt_out(order, sizes));
    if (natural.size() <= kMostToSwap) swap_while_better(labels);
    if (labels.cost() < best.cost()) best = std::move(labels);
  }
  return {natural.global(), natural.ranks(), natural.periodic(),
          positions_of(node_of, best.node_of())};
}

}  // namespace

OffNodePoints off_node_points(const Decomposition& decomposition,
                              const PerAxis<std::int64_t>& radius, const DirectionSet& directions,
                              const std::vector<int>& node_of) {
  return Labels(HaloGraph(decomposition, radius, directions), node_of).cost();
}

Decomposition place(const std::vector<Decomposition>& choices, const PerAxis<std::int64_t>& radius,
                    const DirectionSet& directions, const std::vector<int>& node_of,
                    Reorder reorder) {
  if (std::all_of(node_of.begin(), node_of.end(), [](int node) { return node == 0; }))
    return choices.front();
  std::optional<Decomposition> best;
  OffNodePoints least;
  for (const auto& choice : choices) {
    auto placed =
        reorder == Reorder::node ? map_by_node(choice, radius, directions, node_of) : choice;
    const HaloGraph faces(placed, radius, DirectionSet::along_at_most(1));
    const auto cost = Labels(faces, node_of).cost();
    if (best && !(cost < least)) continue;
    least = cost;
    best = std::move(placed);
  }
  return *best;
}

}  // namespace halocline::comm
