// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/pack_plan.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "dtype/datatype.hpp"
#include "layout.hpp"

namespace halocline::dtype::test {

namespace {

PackPlan plan_of(const char* text) {
  return PackPlan(nest_of(text));
}

std::vector<LoopLevel> levels_of(const PackPlan::Loops& loops) {
  return {loops.levels.begin(), loops.levels.end()};
}

}  // namespace

TEST(PackPlan, InstancesOfADenseTypeAreOneRun) {
  const auto plan = plan_of("contiguous(3,double)");
  const auto loops = plan.loops(1000000000000);
  EXPECT_EQ(loops.run, 24000000000000);
  EXPECT_TRUE(loops.levels.empty());
  EXPECT_EQ(loops.outermost_count, 1);
  EXPECT_EQ(plan.packed_bytes(1000000000000), 24000000000000);
}

TEST(PackPlan, InstancesContinueTheOutermostLevel) {
  const auto plan = plan_of("resized(vector(4,1,2,int),0,32)");
  const auto loops = plan.loops(5);
  EXPECT_EQ(levels_of(loops), (std::vector<LoopLevel>{{4, 8, 4}}));
  EXPECT_EQ(loops.outermost_count, 20);
}

TEST(PackPlan, InstancesElsewhereAreALevel) {
  const auto plan = plan_of("vector(4,1,2,int)");  // extent 28: the last gap is missing
  const auto loops = plan.loops(5);
  EXPECT_EQ(levels_of(loops), (std::vector<LoopLevel>{{4, 8, 4}, {1, 28, 16}}));
  EXPECT_EQ(loops.outermost_count, 5);
}

// The level with the longest stride is not the one that is outermost in the packed stream, so that
// the next instance's bytes do not follow it there.
TEST(PackPlan, InstancesContinueInThePackedStreamToo) {
  const auto plan = plan_of("resized(hvector(4,1,8,hvector(3,1,64,double)),0,192)");
  EXPECT_EQ(levels_of(plan.loops(2)),
            (std::vector<LoopLevel>{{4, 8, 24}, {3, 64, 8}, {1, 192, 96}}));
}

TEST(PackPlan, InstancesOfExtentZeroAndNegative) {
  EXPECT_EQ(levels_of(plan_of("resized(int,0,0)").loops(3)), (std::vector<LoopLevel>{{1, 0, 4}}));
  EXPECT_EQ(levels_of(plan_of("resized(int,0,-4)").loops(3)), (std::vector<LoopLevel>{{1, -4, 4}}));
}

TEST(PackPlan, WithoutDataThereIsNoRun) {
  EXPECT_EQ(plan_of("vector(4,1,2,int)").loops(0).run, 0);
  EXPECT_EQ(plan_of("contiguous(0,int)").loops(7).run, 0);
  EXPECT_EQ(plan_of("contiguous(0,int)").packed_bytes(7), 0);
}

TEST(PackPlan, IsMadeFromAHandle) {
  const auto handle = make_datatype(*parse_type("vector(4,2,3,float)"));
  EXPECT_EQ(std::get<PackPlan>(make_plan(handle.get())), plan_of("vector(4,2,3,float)"));
  const auto irregular = make_datatype(*parse_type("indexed({1,2},{0,5},int)"));
  EXPECT_TRUE(std::holds_alternative<UnsupportedDatatype>(make_plan(irregular.get())));
}

}  // namespace halocline::dtype::test
