// SPDX-License-Identifier: BSD-3-Clause
// Tests the lists of blocks that random types do not show one by one: limits, long runs, counts.
#include "dtype/pack/block_list.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "layout.hpp"

namespace halocline::dtype::test {

using Blocks = std::vector<MemoryBlock>;

TEST(BlockList, EndsAtALimit) {
  // Blocks of 4, 2 and 2 bytes at 0, 8 and 12; the next instance begins at 20.
  const auto plan = plan_of("resized(struct({1,1},{0,8},{int,vector(2,1,2,short)}),0,20)");
  Blocks blocks(4);
  std::int64_t position = 0;
  ASSERT_EQ(list_blocks(plan, 2, position, blocks), 4u);
  EXPECT_EQ(blocks, (Blocks{{0, 4}, {8, 2}, {12, 2}, {20, 4}}));
  EXPECT_EQ(position, 12);
  position = 9;
  ASSERT_EQ(list_blocks(plan, 2, position, blocks), 3u);
  EXPECT_EQ(blocks[0], (MemoryBlock{21, 3})) << "a byte into the second int";
  EXPECT_EQ(blocks[2], (MemoryBlock{32, 2}));
  EXPECT_EQ(position, plan.packed_bytes(2));
  EXPECT_EQ(list_blocks(plan, 2, position, blocks), 0u);
}

TEST(BlockList, HasWholeRuns) {
  // Multiples of an int are copied int by int, but listed as runs.
  const auto plan = plan_of("indexed({3,1,2,5},{0,7,4,20},int)");
  Blocks blocks(8);
  std::int64_t position = 0;
  ASSERT_EQ(list_blocks(plan, 2, position, blocks), 7u);
  EXPECT_EQ((Blocks(blocks.begin(), blocks.begin() + 4)),
            (Blocks{{0, 12}, {28, 4}, {16, 8}, {80, 32}}))
      << "the next instance continues the last run";
  EXPECT_EQ(count_blocks(plan, 2, 0, plan.packed_bytes(2)), 7);
}

TEST(BlockList, CountsWithoutListing) {
  const auto plan = plan_of("vector(1000000,1,2,double)");
  const std::int64_t instances = 1000000, bytes = plan.packed_bytes(instances);
  EXPECT_EQ(bytes, 8000000000000);
  EXPECT_EQ(count_blocks(plan, instances, 0, 4000), 500);
  // The last run of an instance and the first run of the next one are one block.
  EXPECT_EQ(count_blocks(plan, instances, 4000, bytes), 1000000000000 - 500 - 999999);
}

// Displacements are around the limits of 32 bits; no memory is touched.
TEST(BlockList, HasBlocksFarAway) {
  for (const std::int64_t limit :
       {std::int64_t{1} << 31, -(std::int64_t{1} << 31), std::int64_t{1} << 32}) {
    const auto far = [&](std::int64_t by) { return std::to_string(limit + by); };
    const auto plan =
        plan_of("hindexed_block(1,{0,100," + far(-8) + "," + far(0) + "," + far(24) + "},int)");
    Blocks blocks(8);
    std::int64_t position = 0;
    ASSERT_EQ(list_blocks(plan, 1, position, blocks), 5u);
    EXPECT_EQ(blocks[2].offset, limit - 8);
    EXPECT_EQ(blocks[3].offset, limit);
    EXPECT_EQ(blocks[4].offset, limit + 24);
  }
}

}  // namespace halocline::dtype::test
