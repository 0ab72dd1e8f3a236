// SPDX-License-Identifier: BSD-3-Clause
// Tests real and emulated nodes.
#include "comm/node/node_hierarchy.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/error.hpp"
#include "world.hpp"

namespace halocline::comm {
namespace {

using Numbers = std::vector<int>;

// Tests run on one machine.
TEST(NodeHierarchy, RanksOfOneMachineShareANode) {
  const NodeHierarchy nodes(MPI_COMM_WORLD);
  EXPECT_EQ(nodes.rank(), world_rank());
  EXPECT_EQ(nodes.ranks(), world_size());
  EXPECT_EQ(nodes.nodes(), 1);
  EXPECT_FALSE(nodes.emulated());
  for (int rank = 0; rank < world_size(); ++rank) {
    EXPECT_EQ(nodes.node_of(rank), 0);
    EXPECT_TRUE(nodes.same_node(rank));
    EXPECT_EQ(nodes.ranks_of(0)[static_cast<std::size_t>(rank)], rank);
  }
}

TEST(NodeHierarchy, OneNumberIsThatOfAllNodesButPerhapsTheLast) {
  const NodeHierarchy nodes(MPI_COMM_WORLD, {2});
  const int ranks = world_size();
  EXPECT_EQ(nodes.nodes(), (ranks + 1) / 2);
  EXPECT_EQ(nodes.emulated(), ranks > 2);
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(nodes.node_of(rank), rank / 2);
    EXPECT_EQ(nodes.same_node(rank), rank / 2 == world_rank() / 2);
  }
  EXPECT_EQ(nodes.ranks_of(nodes.nodes() - 1).size(), ranks % 2 == 0 ? 2u : 1u);
}

TEST(NodeHierarchy, AListHasANumberForEachNode) {
  const int ranks = world_size();
  const auto list = ranks == 1 ? Numbers{1} : Numbers{1, ranks - 1};
  const NodeHierarchy nodes(MPI_COMM_WORLD, list);
  EXPECT_EQ(nodes.emulated(), ranks > 1);
  EXPECT_EQ(nodes.nodes(), std::ssize(list));
  EXPECT_EQ(nodes.ranks_of(0), Numbers{0});
  EXPECT_EQ(std::ssize(nodes.ranks_of(nodes.nodes() - 1)), list.back());
  for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(nodes.node_of(rank), rank == 0 ? 0 : 1);
}

TEST(NodeHierarchy, ManyPerNodeAreTheRealNodeAndNotEmulated) {
  const NodeHierarchy nodes(MPI_COMM_WORLD, {1000});
  EXPECT_EQ(nodes.nodes(), 1);
  EXPECT_FALSE(nodes.emulated());
}

TEST(NodeHierarchy, RanksOfOneColorShareANode) {
  const int ranks = world_size();
  const auto nodes = NodeHierarchy::by_color(MPI_COMM_WORLD, 100 - world_rank() % 2);
  EXPECT_EQ(nodes.nodes(), std::min(ranks, 2));
  EXPECT_EQ(nodes.emulated(), ranks > 1);
  for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(nodes.node_of(rank), rank % 2);
}

TEST(NodeHierarchy, NumbersThatDoNotFitAreRefusedOnAllRanks) {
  const int ranks = world_size();
  for (const auto& numbers : {Numbers{}, Numbers{0}, Numbers{-1}, Numbers{ranks, 1},
                              Numbers{ranks, 0}, Numbers{ranks + 1, -1}, Numbers{1, 2147483647}})
    EXPECT_THROW(NodeHierarchy(MPI_COMM_WORLD, numbers), ConfigError);
}

TEST(EmulatedNodes, DivideTheRealOnes) {
  EXPECT_EQ(emulated_nodes({0, 0, 0, 0}, {3}), (Numbers{0, 0, 0, 1}));
  EXPECT_EQ(emulated_nodes({0, 0, 0, 1, 1, 1}, {2, 1, 3}), (Numbers{0, 0, 1, 2, 2, 2}));
  EXPECT_EQ(emulated_nodes({0, 1, 0, 1}, {1}), (Numbers{0, 1, 2, 3}));
}

TEST(EmulatedNodes, ThatSpanRealOnesAreRefused) {
  EXPECT_THROW(emulated_nodes({0, 0, 0, 1, 1, 1}, {2}), ConfigError);
  EXPECT_THROW(emulated_nodes({0, 1, 0, 1}, {2}), ConfigError);
  EXPECT_THROW(emulated_nodes({0, 1}, {8}), ConfigError);
}

}  // namespace
}  // namespace halocline::comm
