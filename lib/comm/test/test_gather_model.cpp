// SPDX-License-Identifier: BSD-3-Clause
#include "comm/gather/gather_model.hpp"

#include <gtest/gtest.h>

namespace halocline::comm {
namespace {

// Seconds that are whole numbers: 1 for a message on a node, 10 between nodes; bytes cost 2 and 3.
constexpr MachineCost kCost{{1, 2}, {10, 3}};

TEST(GatherModel, AddsUpMessages) {
  const RegularGather gather{3, 4, 5};
  // On each node 3 messages of 5 bytes; then 2 of 20 between nodes.
  EXPECT_DOUBLE_EQ(hierarchical_gather_seconds(gather, kCost, {TreeForm::linear, TreeForm::linear}),
                   3 * (1 + 2 * 5) + 2 * (10 + 3 * 20));
  // On a node a message of 5 and one of 10, as two ranks send at once.
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

// With N nodes of n ranks: (N - 1) n messages without the hierarchy, N - 1 with it, each of which
// brings n blocks.
TEST(GatherModel, CountsMessagesBetweenNodes) {
  const RegularGather gather{5, 3, 7};
  EXPECT_EQ(flat_off_node(gather), (ScheduleTraffic::Messages{12, 84}));
  EXPECT_EQ(hierarchical_off_node(gather, TreeForm::linear), (ScheduleTraffic::Messages{4, 84}));
  // Node 3's blocks go through node 2.
  EXPECT_EQ(hierarchical_off_node(gather, TreeForm::binomial),
            (ScheduleTraffic::Messages{4, 84 + 21}));
  EXPECT_EQ(hierarchical_off_node(gather, TreeForm::linear, 10),
            (ScheduleTraffic::Messages{12, 84}));
}

// T = (n - 1)(a + m b) + (N - 1)(A + n m B) by (n - 1)(a + m b) + (N - 1) n (A + m B): the
// hierarchy has the former on all nodes before, and saves (N - 1)(n - 1) A.
TEST(GatherModel, SaysUpToWhichSizeTheHierarchyWins) {
  const MachineCost cost{{0, 1}, {64, 0}};
  for (const int nodes : {2, 5}) {
    const auto bytes = wins_up_to(cost, nodes, 8, TreeForm::linear, 1, 1 << 20);
    ASSERT_TRUE(bytes.has_value());
    EXPECT_EQ(*bytes, 1 << 20);  // the root's node takes as long in both
  }
  // Of 2 x 5 ranks and messages on a node for nothing, a binomial tree sends rank 4 the blocks of
  // rank 5 and then those of 6 and 7: 2 A + 3 m B, by A + 5 m B of the hierarchy.
  const MachineCost free_on_node{{0, 0}, {64, 1}};
  EXPECT_EQ(wins_up_to(free_on_node, 2, 5, TreeForm::binomial, 1, 1024), 16);
  EXPECT_DOUBLE_EQ(flat_gather_seconds({2, 5, 32}, free_on_node, TreeForm::binomial),
                   2 * 64 + 3 * 32);
  // In order, and with powers of two, a binomial tree is a hierarchy already.
  EXPECT_EQ(wins_up_to(cost, 4, 8, TreeForm::binomial, 1, 1024), std::nullopt);
}

}  // namespace
}  // namespace halocline::comm
