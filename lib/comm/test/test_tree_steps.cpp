// SPDX-License-Identifier: BSD-3-Clause
// Tests blocks and rounds of the trees.
#include "comm/gather/tree_steps.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>

namespace halocline::comm {
namespace {

int rank_at(int position, int root, int size) {
  return (position + root) % size;
}

TEST(TreeSteps, BringEveryBlockToTheRootOnce) {
  for (const auto& [form, name] : kTreeForms)
    for (int size = 1; size <= 70; ++size)
      for (const int root : {0, size / 2, size - 1})
        for (int rank = 0; rank < size; ++rank) {
          const auto steps = tree_steps(form, size, root, rank);
          EXPECT_EQ(steps.parent.has_value(), rank != root);
          // Blocks that arrive follow the rank's own block without a gap.
          int next = steps.blocks.first + 1;
          EXPECT_EQ(rank_at(steps.blocks.first, root, size), rank);
          for (const auto& child : steps.children) {
            EXPECT_EQ(child.blocks.first, next);
            next = child.blocks.last;
            const auto of_child = tree_steps(form, size, root, child.rank);
            EXPECT_EQ(of_child.parent, rank);
            EXPECT_EQ(of_child.blocks, child.blocks);
          }
          EXPECT_EQ(steps.blocks.last, next);
          EXPECT_EQ(rank == root, steps.blocks == (Positions{0, size}) || size == 1);
        }
}

// Returns the rounds until a rank has all its blocks, if it takes part in one message per round.
int rounds_until_ready(TreeForm form, int size, int rank) {
  std::vector<int> ready;
  for (const auto& child : tree_steps(form, size, 0, rank).children)
    ready.push_back(rounds_until_ready(form, size, child.rank));
  std::sort(ready.begin(), ready.end());
  return std::accumulate(ready.begin(), ready.end(), 0,
                         [](int round, int from) { return std::max(round, from) + 1; });
}

TEST(TreeSteps, TakeAsManyRoundsAsTheFormSays) {
  for (int size = 1; size <= 130; ++size) {
    EXPECT_EQ(rounds_until_ready(TreeForm::linear, size, 0), size - 1);
    EXPECT_EQ(rounds_until_ready(TreeForm::binomial, size, 0),
              tree_rounds(TreeForm::binomial, size));
    // ceil(log2 size)
    EXPECT_GE(1 << tree_rounds(TreeForm::binomial, size), size);
    EXPECT_LT(1 << tree_rounds(TreeForm::binomial, size), 2 * size);
  }
}

// "At most one round off from the round lower bound" [TR14 section 2].
TEST(TreeSteps, OfTwoLevelsAreOneRoundOffAtMost) {
  const auto rounds = [](int size) { return tree_rounds(TreeForm::binomial, size); };
  for (int nodes = 1; nodes <= 64; ++nodes)
    for (int each = 1; each <= 64; ++each)
      EXPECT_LE(rounds(nodes) + rounds(each), rounds(nodes * each) + 1) << nodes << " x " << each;
}

TEST(TreeForms, AreBinomialWhereLatencyDecides) {
  EXPECT_EQ(choose_form(16, 8), TreeForm::binomial);
  EXPECT_EQ(choose_form(16, kBinomialBytes), TreeForm::linear);
  EXPECT_EQ(choose_form(2, 8), TreeForm::linear);  // both forms are the same with 2 ranks
}

}  // namespace
}  // namespace halocline::comm
