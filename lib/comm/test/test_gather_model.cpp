// SPDX-License-Identifier: BSD-3-Clause
// Tests predicted seconds and messages of gathers.
#include "comm/gather/gather_model.hpp"

#include <gtest/gtest.h>

namespace halocline::comm {
namespace {

// Makes all seconds whole numbers: 1 for a message on a node, 10 between nodes; a byte costs 2 and
// 3.
constexpr MachineCost kCost{{1, 2}, {10, 3}};

TEST(GatherModel, AddsUpMessages) {
  const RegularGather gather{3, 4, 5};
  // Each node has 3 messages of 5 bytes. Then 2 messages of 20 bytes go between nodes.
  EXPECT_DOUBLE_EQ(hierarchical_gather_seconds(gather, kCost, {TreeForm::linear, TreeForm::linear}),
                   3 * (1 + 2 * 5) + 2 * (10 + 3 * 20));
  // On a node there is a message of 5 bytes and one of 10, since two ranks send at once.
  EXPECT_DOUBLE_EQ(
      hierarchical_gather_seconds(gather, kCost, {TreeForm::binomial, TreeForm::linear}),
      (1 + 2 * 5) + (1 + 2 * 10) + 2 * (10 + 3 * 20));
  EXPECT_DOUBLE_EQ(flat_gather_seconds(gather, kCost, TreeForm::linear),
                   3 * (1 + 2 * 5) + 8 * (10 + 3 * 5));
}

TEST(GatherModel, KnowsWhereRanksAre) {
  const RegularGather gather{2, 2, 0};
  EXPECT_DOUBLE_EQ(flat_gather_seconds(gather, kCost, TreeForm::binomial), 1 + 10);
  EXPECT_DOUBLE_EQ(flat_gather_seconds(gather, kCost, TreeForm::binomial, {0, 1, 0, 1}), 10 + 1);
  EXPECT_DOUBLE_EQ(flat_gather_seconds(gather, kCost, TreeForm::linear, {0, 1, 1, 0}), 10 + 10 + 1);
}

// With N nodes of n ranks, there are (N - 1) n messages without the hierarchy. With it there are N
// - 1, each with n blocks.
TEST(GatherModel, CountsMessagesBetweenNodes) {
  const RegularGather gather{5, 3, 7};
  EXPECT_EQ(flat_off_node(gather), (ScheduleTraffic::Messages{12, 84}));
  EXPECT_EQ(hierarchical_off_node(gather, TreeForm::linear), (ScheduleTraffic::Messages{4, 84}));
  // The blocks of node 3 go through node 2.
  EXPECT_EQ(hierarchical_off_node(gather, TreeForm::binomial),
            (ScheduleTraffic::Messages{4, 84 + 21}));
  EXPECT_EQ(hierarchical_off_node(gather, TreeForm::linear, 10),
            (ScheduleTraffic::Messages{12, 84}));
}

// The hierarchy takes T = (n - 1)(a + m b) + (N - 1)(A + n m B). Without it, T = (n - 1)(a + m b) +
// (N - 1) n (A + m B). All nodes gather at once before, so the hierarchy saves (N - 1)(n - 1) A.
TEST(GatherModel, SaysUpToWhichSizeTheHierarchyWins) {
  const MachineCost cost{{0, 1}, {64, 0}};
  for (const int nodes : {2, 5}) {
    const auto bytes = wins_up_to(cost, nodes, 8, TreeForm::linear, 1, 1 << 20);
    ASSERT_TRUE(bytes.has_value());
    EXPECT_EQ(*bytes, 1 << 20);  // the root's node takes the same time in both
  }
  // There are 2 x 5 ranks, and messages on a node cost nothing. A flat binomial tree sends rank 4
  // the block of rank 5, then the blocks of ranks 6 and 7: 2 A + 3 m B. The hierarchy takes A + 5 m
  // B.
  const MachineCost free_on_node{{0, 0}, {64, 1}};
  EXPECT_EQ(wins_up_to(free_on_node, 2, 5, TreeForm::binomial, 1, 1024), 16);
  EXPECT_DOUBLE_EQ(flat_gather_seconds({2, 5, 32}, free_on_node, TreeForm::binomial),
                   2 * 64 + 3 * 32);
  // With ranks in order and powers of two, a binomial tree is a hierarchy already.
  EXPECT_EQ(wins_up_to(cost, 4, 8, TreeForm::binomial, 1, 1024), std::nullopt);
}

}  // namespace
}  // namespace halocline::comm
