// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/pack_plan.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "dtype/datatype.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "layout.hpp"

namespace halocline::dtype::test {

namespace {

const detail::StridedOp& strided_of(const PackPlan& plan) {
  return plan.program().root.strided;
}

int innermost_of(const char* text) {
  return plan_of(text).program().root.strided.innermost;
}

}  // namespace

TEST(PackPlan, InstancesOfADenseTypeAreOneRun) {
  const auto plan = plan_of("contiguous(3,double)");
  EXPECT_EQ(strided_of(plan).run, 24);
  EXPECT_TRUE(strided_of(plan).levels.empty());
  EXPECT_EQ(plan.packed_bytes(1000000000000), 24000000000000);
}

TEST(PackPlan, InstancesContinueTheOutermostLevel) {
  const auto plan = plan_of("resized(vector(4,1,2,int),0,32)");
  EXPECT_EQ(strided_of(plan).levels, (std::vector<LoopLevel>{{4, 8, 4}}));
}

TEST(PackPlan, InstancesElsewhereAreALevel) {
  const auto plan = plan_of("vector(4,1,2,int)");  // extent 28: the last gap is missing
  EXPECT_EQ(strided_of(plan).levels, (std::vector<LoopLevel>{{4, 8, 4}, {1, 28, 16}}));
}

// The level with the longest stride is not the one that is outermost in the packed stream, so that
// the next instance's bytes do not follow it there.
TEST(PackPlan, InstancesContinueInThePackedStreamToo) {
  const auto plan = plan_of("resized(hvector(4,1,8,hvector(3,1,64,double)),0,192)");
  EXPECT_EQ(strided_of(plan).levels,
            (std::vector<LoopLevel>{{4, 8, 24}, {3, 64, 8}, {1, 192, 96}}));
  EXPECT_EQ(strided_of(plan).level(0), (LoopLevel{3, 64, 8}));
  EXPECT_EQ(strided_of(plan).level(1), (LoopLevel{4, 8, 24}));
}

TEST(PackPlan, OneInstanceHasNoLoopOverInstances) {
  // The shortest stride is that from instance to instance; alone, one is tiles nevertheless.
  const auto plan = plan_of("resized(hvector(32,1,8,vector(32,1,32,double)),0,4)");
  EXPECT_EQ(plan.program().root.strided.innermost, 2);
  EXPECT_EQ(plan.program().entry(1).strided.innermost, 1);
  EXPECT_EQ(&plan.program().entry(2), &plan.program().root);
}

TEST(PackPlan, FewRunsOfTilesAndListsAreAList) {
  for (const char* text :
       {"hvector(4,1,8,vector(4,1,4,double))", "hvector(4,1,100,indexed_block(1,{0,2,5,9},double))",
        "struct({1,1},{0,64},{vector(2,1,3,int),vector(3,1,2,int)})"}) {
    EXPECT_EQ(plan_of(text).program().entry(1).kind, detail::Op::Kind::blocks) << text;
    EXPECT_NE(plan_of(text).program().root.kind, detail::Op::Kind::blocks) << text;
  }
  // Rows in order, and many tiles: not.
  for (const char* text :
       {"subarray(C,{8,8,8},{3,3,3},{1,1,1},double)", "hvector(16,1,8,vector(16,1,16,double))"})
    EXPECT_EQ(plan_of(text).program().entry(1).kind, detail::Op::Kind::strided) << text;
}

TEST(PackPlan, ListsAreSplitWhereTheirRunsChange) {
  // 40 runs of 24 bytes, then 40 of 8: together they are all multiples of 8, and three times as
  // many.
  std::string triples, singles;
  for (int i = 0; i < 40; ++i) {
    triples += (i == 0 ? "" : ",") + std::to_string(i * 6 + i * i % 37 % 3);
    singles += (i == 0 ? "" : ",") + std::to_string(900 + i * 4 + i * i % 37 % 3);
  }
  const auto plan = plan_of("struct({1,1},{0,0},{indexed_block(3,{" + triples +
                            "},double),indexed_block(1,{" + singles + "},double)})");
  const auto& list = plan.program().entry(1);
  ASSERT_EQ(list.kind, detail::Op::Kind::members);
  const auto& first = plan.program().ops[static_cast<std::size_t>(list.children[0])];
  EXPECT_EQ(first.child_size, 24);
}

TEST(PackPlan, InstancesOfExtentZeroAndNegative) {
  EXPECT_EQ(strided_of(plan_of("resized(int,0,0)")).levels, (std::vector<LoopLevel>{{1, 0, 4}}));
  EXPECT_EQ(strided_of(plan_of("resized(int,0,-4)")).levels, (std::vector<LoopLevel>{{1, -4, 4}}));
}

TEST(PackPlan, WithoutDataPacksNothing) {
  EXPECT_EQ(plan_of("contiguous(0,int)").packed_bytes(7), 0);
  HostPacker().pack(plan_of("contiguous(0,int)"), nullptr, 7, nullptr);
  HostPacker().pack(plan_of("vector(4,1,2,int)"), nullptr, 0, nullptr);
}

TEST(PackPlan, LevelsRunInSourceOrderWhereThatUsesWholeLines) {
  // FLASH: 24 variables of a point are neighbours; packed, they are far apart.
  EXPECT_EQ(innermost_of("hvector(24,1,8,hvector(80,1,786432,hvector(8,1,49152,hvector(8,1,3072,"
                         "hvector(8,1,192,double)))))"),
            4);
  EXPECT_EQ(innermost_of("hvector(16,1,8,vector(16,1,16,double))"), 1);
  EXPECT_EQ(innermost_of("subarray(C,{16,16,16},{8,8,4},{0,0,0},double)"), 0);
  // Whole lines in either order.
  EXPECT_EQ(innermost_of("hvector(16,1,64,vector(16,8,128,double))"), 0);
}

TEST(PackPlan, SmallStructsAreTakenApart) {
  // Runs of 1 and 12 bytes (double and int adjoin): atoms of 1, 8 and 4, in one loop.
  const auto plan = plan_of("struct({1,1,1},{0,8,16},{char,double,int})");
  const auto& root = plan.program().root;
  EXPECT_EQ(root.kind, detail::Op::Kind::repeat);
  EXPECT_TRUE(root.parts.empty());
  ASSERT_EQ(root.groups.size(), 1u);
  ASSERT_EQ(root.groups[0].size, 3u);
  EXPECT_EQ(root.groups[0].atoms[0], (detail::Atom{8, 1, 8}));
  EXPECT_EQ(root.groups[0].atoms[1], (detail::Atom{16, 9, 4}));
  EXPECT_EQ(root.groups[0].atoms[2], (detail::Atom{0, 0, 1}));

  // Long runs and strided members have loops of their own, over chunks of instances.
  const auto mixed = plan_of("struct({1,40,1},{0,8,200},{char,int,vector(2,1,3,int)})");
  EXPECT_EQ(mixed.program().root.groups.size(), 1u);
  ASSERT_EQ(mixed.program().root.parts.size(), 2u);
  EXPECT_EQ(mixed.program().root.parts[0].run, 160);
  EXPECT_EQ(mixed.program().root.parts[1].levels,
            (std::vector<LoopLevel>{{2, 12, 4}, {1, 216, 169}}));
  EXPECT_LT(mixed.program().root.chunk, 100);
}

TEST(PackPlan, TablesAreCounted) {
  EXPECT_EQ(plan_of("contiguous(3,double)").metadata_bytes(), 0);
  const auto plan = plan_of("indexed_block(1,{0,5,6,9,17,30},double)");
  // The list, and its six atoms in two groups for many instances.
  EXPECT_EQ(plan.metadata_bytes(),
            6 * 4 + 4 + 2 * static_cast<std::int64_t>(sizeof(detail::AtomGroup)));
}

TEST(PackPlan, IsMadeFromAHandle) {
  const auto handle = make_datatype(*parse_type("vector(4,2,3,float)"));
  EXPECT_EQ(std::get<PackPlan>(make_plan(handle.get())), plan_of("vector(4,2,3,float)"));
}

}  // namespace halocline::dtype::test
