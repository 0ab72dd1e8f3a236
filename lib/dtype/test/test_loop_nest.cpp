// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/loop_nest.hpp"

#include <gtest/gtest.h>

#include "dtype/type_tree.hpp"
#include "layout.hpp"

namespace halocline::dtype::test {

namespace {

std::string text_of(const char* type) {
  return to_string(nest_of(type));
}

}  // namespace

TEST(LoopNest, DenseLevelsFoldIntoTheRun) {
  EXPECT_EQ(text_of("contiguous(4,vector(3,2,2,double))"), "start 0, run 192, levels []");
  EXPECT_EQ(text_of("subarray(C,{4,5,6},{2,5,6},{1,0,0},int)"), "start 120, run 240, levels []");
}

TEST(LoopNest, LevelsOfCountOneVanishAnywhere) {
  EXPECT_EQ(text_of("vector(1,3,99,vector(4,1,2,vector(1,1,7,int)))"),
            "start 0, run 4, levels [4 x 8 -> 4, 3 x 28 -> 16]");
  EXPECT_EQ(text_of("subarray(C,{4,4,4},{2,1,2},{1,2,1},byte)"),
            "start 25, run 2, levels [2 x 16 -> 2]");
}

TEST(LoopNest, StreamsThatContinueAreOne) {
  EXPECT_EQ(text_of("hvector(3,1,32,vector(4,1,2,int))"), "start 0, run 4, levels [12 x 8 -> 4]");
  EXPECT_EQ(text_of("hvector(3,1,0,hvector(2,1,0,int))"), "start 0, run 4, levels [6 x 0 -> 4]");
  EXPECT_EQ(text_of("hvector(3,1,-16,hvector(2,1,-8,int))"),
            "start 0, run 4, levels [6 x -8 -> 4]");
}

TEST(LoopNest, StreamsThatDoNotContinueStay) {
  EXPECT_EQ(text_of("hvector(3,1,33,vector(4,1,2,int))"),
            "start 0, run 4, levels [4 x 8 -> 4, 3 x 33 -> 16]");
  // A stride of one run, but over a level that has gaps: nothing to fold.
  EXPECT_EQ(text_of("hvector(3,1,4,hvector(4,1,16,int))"),
            "start 0, run 4, levels [3 x 4 -> 16, 4 x 16 -> 4]");
}

TEST(LoopNest, LevelsStandByStrideAndKeepTheirPackedStride) {
  EXPECT_EQ(text_of("hvector(2,1,4,hvector(3,1,-100,hvector(5,1,20,int)))"),
            "start 0, run 4, levels [2 x 4 -> 60, 5 x 20 -> 4, 3 x -100 -> 20]");
  // Of equal strides the one that is inner in the packed stream is first.
  EXPECT_EQ(text_of("hvector(2,1,8,hvector(3,1,-8,int))"),
            "start 0, run 4, levels [3 x -8 -> 4, 2 x 8 -> 12]");
}

TEST(LoopNest, ShiftsAddUp) {
  EXPECT_EQ(text_of("subarray(C,{8},{2},{3},subarray(F,{4,4},{2,2},{1,2},int))"),
            "start 228, run 8, levels [2 x 16 -> 8, 2 x 64 -> 16]");
}

TEST(LoopNest, WithoutDataIsEmpty) {
  const auto nest = nest_of("resized(subarray(C,{8},{2},{3},contiguous(0,int)),-8,40)");
  EXPECT_EQ(nest.start, 0);
  EXPECT_EQ(nest.runs(), 0);
  EXPECT_TRUE(nest.levels.empty());
  EXPECT_EQ(nest.bounds.lb, -8);
  EXPECT_EQ(nest.bounds.extent, 40);
}

TEST(LoopNest, BoundsTakePartInEquality) {
  EXPECT_NE(nest_of("contiguous(2,int)"), nest_of("resized(contiguous(2,int),0,12)"));
  EXPECT_NE(nest_of("contiguous(2,int)"), nest_of("resized(contiguous(2,int),-4,8)"));
  EXPECT_EQ(nest_of("contiguous(2,int)"), nest_of("resized(double,0,8)"));
}

TEST(LoopNest, WhatIsNotStridedHasNone) {
  const auto has_nest = [](const char* text) {
    return std::holds_alternative<LoopNest>(strided_nest(translate(*parse_type(text))));
  };
  EXPECT_TRUE(has_nest("indexed({2},{3},vector(2,1,2,int))"));
  EXPECT_TRUE(has_nest("struct({0,0},{0,8},{int,double})")) << "no data";
  for (const auto* text : {"indexed({1,2},{0,4},int)", "hindexed_block(1,{0,8},int)",
                           "struct({1,1},{0,8},{int,double})", "vector(2,1,2,short_int)"})
    EXPECT_FALSE(has_nest(text)) << text;
}

}  // namespace halocline::dtype::test
