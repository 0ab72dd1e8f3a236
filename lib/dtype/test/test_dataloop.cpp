// SPDX-License-Identifier: BSD-3-Clause
// Tests loop nests and dataloops: the canonical forms of types.
#include "dtype/canonical/dataloop.hpp"

#include <gtest/gtest.h>

#include "dtype/type_tree.hpp"
#include "layout.hpp"

namespace halocline::dtype::test {

namespace {

std::string text_of(const char* type) {
  return to_string(nest_of(type));
}

}  // namespace

// Returns the loops of doubles at each of `starts` + k * `stride` + l * 8 * `inner`, k < 4, l <
// `count`.
std::string nests_at(const std::vector<int>& starts, int count, int inner) {
  std::string list;
  for (const int start : starts)
    for (int k = 0; k < 4; ++k)
      for (int l = 0; l < count; ++l)
        list += (list.empty() ? "" : ",") + std::to_string(start + 1000 * k + inner * l);
  const auto form = canonicalize(translate(*parse_type("hindexed_block(1,{" + list + "},double)")));
  return to_string(form.root);
}

TEST(Dataloop, KeepsOneDisplacementForEachNest) {
  EXPECT_EQ(nests_at({0, 50000, 70008, 90000}, 8, 16),
            "blockindexed(4 displacements, strided(run 8, levels [8 x 16 -> 8, 4 x 1000 -> 64]))");
  // A list is faster than nests of few runs.
  EXPECT_EQ(nests_at({0, 50000, 70008, 90000}, 7, 16),
            "blockindexed(112 displacements, contig(8 bytes))");
}

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
  // The stride is one run, but the level inside has gaps: nothing folds.
  EXPECT_EQ(text_of("hvector(3,1,4,hvector(4,1,16,int))"),
            "start 0, run 4, levels [3 x 4 -> 16, 4 x 16 -> 4]");
}

TEST(LoopNest, LevelsStandByStrideAndKeepTheirPackedStride) {
  EXPECT_EQ(text_of("hvector(2,1,4,hvector(3,1,-100,hvector(5,1,20,int)))"),
            "start 0, run 4, levels [2 x 4 -> 60, 5 x 20 -> 4, 3 x -100 -> 20]");
  // If two levels have equal strides, the inner one in the packed stream comes first.
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
  EXPECT_TRUE(form_of("indexed({2},{3},vector(2,1,2,int))").nest());
  EXPECT_TRUE(form_of("struct({0,0},{0,8},{int,double})").nest()) << "no data";
  for (const auto* text : {"indexed({1,2},{0,4},int)", "indexed_block(1,{0,8,24},float)",
                           "struct({1,1},{0,8},{int,double})", "vector(2,1,2,short_int)"})
    EXPECT_FALSE(form_of(text).nest()) << text;
}

TEST(LoopNest, RegularListsAreStrided) {
  EXPECT_EQ(text_of("indexed_block(2,{1,4,7,10},int)"), "start 4, run 8, levels [4 x 12 -> 8]");
  EXPECT_EQ(text_of("indexed({1,1,2},{0,1,2},int)"), "start 0, run 16, levels []");
  EXPECT_EQ(text_of("hindexed_block(1,{0,8,16,100,108,116},int)"),
            "start 0, run 4, levels [3 x 8 -> 4, 2 x 100 -> 12]");
  EXPECT_EQ(text_of("struct({1,1,1},{0,24,48},{double,double,double})"),
            "start 0, run 8, levels [3 x 24 -> 8]");
  EXPECT_EQ(text_of("indexed({1,2},{0,1},long_double_int)"),
            text_of("contiguous(3,long_double_int)"));
  EXPECT_EQ(text_of("struct({2,1},{8,16},{int,double})"), "start 8, run 16, levels []");
}

namespace {

std::string loops_of(const char* type) {
  return to_string(form_of(type).root);
}

}  // namespace

TEST(Dataloop, BlocksThatAdjoinAreOne) {
  EXPECT_EQ(loops_of("indexed_block(1,{0,1,2,5,6,9},int)"), "indexed(3 runs, 24 bytes)");
  EXPECT_EQ(loops_of("indexed_block(1,{0,1,4,5,9,10},int)"),
            "blockindexed(3 displacements, contig(8 bytes))");
  EXPECT_EQ(loops_of("struct({1,1,1},{0,8,16},{char,double,int})"), "indexed(2 runs, 13 bytes)");
}

TEST(Dataloop, ListsThatRepeatAreAVectorOverTheirPattern) {
  EXPECT_EQ(loops_of("indexed_block(1,{0,2,3,5,8,10,12,13,15,18},float)"),
            "vector(2 x 40, indexed(4 runs, 20 bytes))");
  EXPECT_EQ(loops_of("indexed_block(1,{5,0,3,105,100,103},int)"),
            "vector(2 x 400, blockindexed(3 displacements, contig(4 bytes)))");
  EXPECT_EQ(form_of("indexed_block(1,{5,0,3,105,100,103},int)").start, 20);
  // 26 displacements: 8 whole patterns and 2 more.
  EXPECT_EQ(loops_of("indexed_block(1,{0,2,3,7,9,10,14,16,17,21,23,24,28,30,31,35,37,38,42,44,45,"
                     "49,51,52,56,58},int)"),
            "struct(vector(8 x 28, indexed(2 runs, 12 bytes)) at 0, "
            "strided(run 4, levels [2 x 8 -> 4]) at 224)");
}

TEST(Dataloop, StridedMembersStayStrided) {
  EXPECT_EQ(loops_of("struct({1,1},{0,100},{vector(3,1,2,int),vector(2,1,3,double)})"),
            "struct(strided(run 4, levels [3 x 8 -> 4]) at 0, strided(run 8, levels [2 x 24 -> 8]) "
            "at 100)");
  EXPECT_EQ(loops_of("struct({1,1},{0,90},{vector(3,1,2,int),vector(3,1,2,int)})"),
            "strided(run 4, levels [3 x 8 -> 4, 2 x 90 -> 12])");
  EXPECT_EQ(
      loops_of("struct({1,1},{0,100},{struct({1,1},{0,8},{int,vector(2,1,2,int)}),int})"),
      "struct(contig(4 bytes) at 0, strided(run 4, levels [2 x 8 -> 4]) at 8, contig(4 bytes) "
      "at 100)");
}

TEST(Dataloop, IndexedOfSomethingStrided) {
  EXPECT_EQ(loops_of("indexed_block(1,{0,7,9},vector(2,1,2,int))"),
            "blockindexed(3 displacements, strided(run 4, levels [2 x 8 -> 4]))");
  EXPECT_EQ(loops_of("indexed({2,1},{0,7},vector(2,1,3,int))"),
            "struct(strided(run 4, levels [2 x 12 -> 4, 2 x 16 -> 8]) at 0, "
            "strided(run 4, levels [2 x 12 -> 4]) at 112)");
}

TEST(Dataloop, CostsFollowTheModel) {
  EXPECT_EQ(cost(form_of("contiguous(10,int)")), 6);
  EXPECT_EQ(cost(form_of("contiguous(0,int)")), 0);
  EXPECT_EQ(cost(form_of("vector(10,1,2,int)")), 12);
  EXPECT_EQ(cost(form_of("indexed_block(1,{0,7,9},int)")), 6 + 3 + 6);
  EXPECT_EQ(cost(form_of("indexed_block(1,{5,7,12},int)")), 6 + 3 + 6 + 7);
  EXPECT_EQ(cost(form_of("indexed({1,2},{0,7},int)")), 6 + 4 + 6);
}

}  // namespace halocline::dtype::test
