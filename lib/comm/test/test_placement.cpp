// SPDX-License-Identifier: BSD-3-Clause
// Tests that few points leave their node, against all placements of small grids.
#include "comm/halo/placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace halocline::comm {
namespace {

using Numbers = std::vector<int>;

// Returns the node of each rank, for nodes of consecutive ranks.
Numbers nodes_of(const Numbers& sizes) {
  Numbers out;
  for (int node = 0; node < std::ssize(sizes); ++node)
    out.insert(out.end(), static_cast<std::size_t>(sizes[static_cast<std::size_t>(node)]), node);
  return out;
}

int owner(const Decomposition& decomposition, const Int3& point) {
  for (int rank = 0; rank < decomposition.size(); ++rank) {
    const Box box = decomposition.owned(rank);
    bool inside = true;
    for (std::size_t axis = 0; axis < 3; ++axis)
      inside = inside && point[axis] >= box.begin[axis] &&
               point[axis] < box.begin[axis] + box.extent[axis];
    if (inside) return rank;
  }
  return -1;
}

DirectionSet along(int axes) {
  return DirectionSet::along_at_most(axes);
}

// Counts off-node points ghost by ghost, by the owner of each ghost.
OffNodePoints counted(const Decomposition& decomposition, const PerAxis<std::int64_t>& radius,
                      int axes, const Numbers& node_of) {
  const auto node = [&](int rank) { return node_of[static_cast<std::size_t>(rank)]; };
  std::vector<std::int64_t> sent(node_of.size());
  for (int rank = 0; rank < decomposition.size(); ++rank) {
    const Box box = decomposition.owned(rank);
    for (auto z = -radius[2]; z < box.extent[2] + radius[2]; ++z)
      for (auto y = -radius[1]; y < box.extent[1] + radius[1]; ++y)
        for (auto x = -radius[0]; x < box.extent[0] + radius[0]; ++x) {
          Int3 at{x, y, z};
          bool exists = true;
          int outside = 0;
          for (std::size_t axis = 0; axis < 3; ++axis) {
            const auto points = decomposition.global()[axis];
            if (at[axis] < 0 || at[axis] >= box.extent[axis]) ++outside;
            at[axis] += box.begin[axis];
            exists =
                exists && (decomposition.periodic()[axis] || (at[axis] >= 0 && at[axis] < points));
            at[axis] = (at[axis] + points) % points;
          }
          if (!exists || outside > axes) continue;
          const int from = owner(decomposition, at);
          if (node(from) != node(rank)) ++sent[static_cast<std::size_t>(node(from))];
        }
  }
  OffNodePoints out;
  for (const auto points : sent) {
    out.busiest = std::max(out.busiest, points);
    out.total += points;
  }
  return out;
}

// Returns the least cost over all ways to deal the positions out to the nodes.
OffNodePoints least_of_all(const Decomposition& natural, const PerAxis<std::int64_t>& radius,
                           int axes, Numbers node_at) {
  OffNodePoints least{std::numeric_limits<std::int64_t>::max(), 0};
  std::sort(node_at.begin(), node_at.end());
  do {
    least = std::min(least, off_node_points(natural, radius, along(axes), node_at));
  } while (std::next_permutation(node_at.begin(), node_at.end()));
  return least;
}

Decomposition mapped(const Decomposition& natural, const PerAxis<std::int64_t>& radius, int axes,
                     const Numbers& node_of) {
  return place({natural}, radius, along(axes), node_of, Reorder::node);
}

TEST(OffNodePoints, AreTheGhostsThatOtherNodesOwn) {
  for (const auto& periodic : {PerAxis(true), PerAxis(false), PerAxis(false, false, true)})
    for (const auto& sizes : {Numbers{6, 6}, Numbers{1, 4, 7}, Numbers{3, 3, 3, 3}})
      for (const Int3 grid : {Int3{2, 3, 2}, Int3{1, 2, 6}, Int3{12, 1, 1}}) {
        const Decomposition decomposition({25, 13, 14}, grid, periodic);
        const auto node_of = nodes_of(sizes);
        for (const int axes : {1, 2, 3}) {
          const PerAxis<std::int64_t> radius{2, 1, 2};
          const auto other = mapped(decomposition, radius, axes, node_of);
          for (const auto& each : {decomposition, other})
            EXPECT_EQ(off_node_points(each, radius, along(axes), node_of),
                      counted(each, radius, axes, node_of));
        }
      }
}

TEST(Place, FindsTheLeastOfAllWaysOnSmallGrids) {
  struct Case {
    Int3 grid;
    Numbers sizes;
  };
  const std::vector<Case> cases{
      {{2, 2, 2}, {4, 4}},   {{2, 2, 2}, {2, 2, 2, 2}}, {{2, 2, 2}, {3, 5}}, {{2, 2, 2}, {1, 3, 4}},
      {{1, 2, 4}, {4, 4}},   {{4, 2, 1}, {3, 3, 2}},    {{1, 1, 8}, {2, 6}}, {{3, 3, 1}, {3, 3, 3}},
      {{3, 3, 1}, {4, 5}},   {{3, 2, 2}, {5, 7}},       {{1, 3, 4}, {6, 6}}, {{4, 3, 1}, {5, 5, 2}},
      {{2, 3, 1}, {2, 2, 2}}};
  for (const bool periodic : {true, false})
    for (const auto& [grid, sizes] : cases) {
      const Decomposition natural({24, 23, 30}, grid, periodic);
      const auto node_of = nodes_of(sizes);
      for (const int axes : {1, 3})
        EXPECT_EQ(off_node_points(mapped(natural, 3, axes, node_of), 3, along(axes), node_of),
                  least_of_all(natural, 3, axes, node_of))
            << axes << " axes, " << grid[0] << " " << grid[1] << " " << grid[2] << ", "
            << testing::PrintToString(sizes) << (periodic ? ", periodic" : "");
    }
}

// For a cube, 1 x 2 x 3 and 1 x 3 x 2 have the same surface. With three ranks per node in order,
// only 1 x 3 x 2 separates the nodes by one plane.
TEST(Place, ChoosesTheGridOfLeastSurfaceBetweenNodes) {
  const auto node_of = nodes_of({3, 3});
  std::vector<Decomposition> choices;
  for (const auto& grid : good_grids(6, {48, 48, 48}, 3))
    choices.emplace_back(Int3{48, 48, 48}, grid, true);
  EXPECT_EQ(choices.front().ranks(), (Int3{1, 2, 3}));
  const auto in_order = place(choices, 3, along(3), node_of, Reorder::none);
  EXPECT_EQ(in_order.ranks(), (Int3{1, 3, 2}));
  EXPECT_EQ(in_order.coordinates(4), (Int3{0, 1, 1}));
  const auto by_node = place(choices, 3, along(3), node_of, Reorder::node);
  EXPECT_EQ(by_node.ranks(), (Int3{1, 2, 3}));
  EXPECT_EQ(by_node.coordinates(2), (Int3{0, 0, 2}));
  EXPECT_EQ(place(choices, 3, along(3), Numbers(6, 0), Reorder::node).ranks(), (Int3{1, 2, 3}));
}

TEST(Place, EachOfEqualNodesGetsABlock) {
  const Numbers sizes(8, 8);
  const auto node_of = nodes_of(sizes);
  const Decomposition natural({64, 64, 64}, {4, 4, 4}, true);
  const auto placed = mapped(natural, 3, 3, node_of);
  for (int rank = 0; rank < 64; ++rank)
    for (std::size_t axis = 0; axis < 3; ++axis)
      EXPECT_EQ(placed.coordinates(rank)[axis] / 2, placed.coordinates(rank / 8 * 8)[axis] / 2);
  EXPECT_LT(off_node_points(placed, 3, along(3), node_of),
            off_node_points(natural, 3, along(3), node_of));
}

TEST(Place, IsNeverWorseThanTheNaturalOrder) {
  for (const auto& sizes : {Numbers(12, 8), Numbers{32, 32, 32}, Numbers{40, 40, 16},
                            Numbers{7, 60, 1, 28}, Numbers{95, 1}})
    for (const auto& grid : good_grids(96, {100, 90, 80}, 3)) {
      const Decomposition natural({100, 90, 80}, grid, true);
      const auto node_of = nodes_of(sizes);
      for (const int axes : {1, 2, 3})
        EXPECT_LE(off_node_points(mapped(natural, 3, axes, node_of), 3, along(axes), node_of),
                  off_node_points(natural, 3, along(axes), node_of));
    }
}

TEST(Place, NodesNeedNotHaveConsecutiveRanks) {
  const Numbers in_turn{0, 1, 0, 1, 0, 1, 0, 1};
  const Decomposition natural({16, 16, 32}, {1, 2, 4}, true);
  const auto placed = mapped(natural, 2, 3, in_turn);
  EXPECT_EQ(off_node_points(placed, 2, along(3), in_turn),
            off_node_points(natural, 2, along(3), {0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_LT(off_node_points(placed, 2, along(3), in_turn),
            off_node_points(natural, 2, along(3), in_turn));
}

TEST(Place, LeavesTheNaturalOrderWhereNothingIsAskedOrGained) {
  const Decomposition natural({16, 16, 32}, {1, 2, 4}, true);
  for (const auto& node_of : {Numbers(8, 0), nodes_of({4, 4}), nodes_of({2, 2, 2, 2})})
    for (const auto reorder : {Reorder::none, Reorder::node})
      for (int rank = 0; rank < 8; ++rank)
        EXPECT_EQ(place({natural}, 2, along(3), node_of, reorder).coordinates(rank),
                  natural.coordinates(rank));
}

}  // namespace
}  // namespace halocline::comm
