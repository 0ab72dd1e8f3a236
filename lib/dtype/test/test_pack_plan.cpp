// SPDX-License-Identifier: BSD-3-Clause
// Tests what a pack plan makes of a type: tiles, lists, atoms and loops.
#include "dtype/pack/pack_plan.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
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
  return plan_of(text).program().root.strided.innermost_height;
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

// The level with the longest stride is not outermost in the packed stream. The next instance's
// bytes therefore do not follow that level there.
TEST(PackPlan, InstancesContinueInThePackedStreamToo) {
  const auto plan = plan_of("resized(hvector(4,1,8,hvector(3,1,64,double)),0,192)");
  EXPECT_EQ(strided_of(plan).levels,
            (std::vector<LoopLevel>{{4, 8, 24}, {3, 64, 8}, {1, 192, 96}}));
  EXPECT_EQ(strided_of(plan).level(0), (LoopLevel{3, 64, 8}));
  EXPECT_EQ(strided_of(plan).level(1), (LoopLevel{4, 8, 24}));
}

// Three instances of this transposition overlap, and must be unpacked one after the other.
TEST(PackPlan, TilesAreForPlacesThatDoNotOverlap) {
  const auto plan = plan_of("contiguous(128,resized(vector(128,1,256,c_double_complex),0,16))");
  EXPECT_EQ(strided_of(plan).innermost_height, 1);
  EXPECT_EQ(strided_of(plan).free_steps, 256);  // two instances
  constexpr std::int64_t kPlaces = 128 * 256;
  struct Element {
    std::int64_t number, zero;
    bool operator==(const Element&) const = default;
  };
  for (const std::int64_t count : {1, 2, 3, 5}) {
    std::vector<Element> packed, memory(kPlaces + 128 * 5), expected = memory;
    for (std::int64_t instance = 0; instance < count; ++instance)
      for (std::int64_t x = 0; x < 128; ++x)
        for (std::int64_t y = 0; y < 128; ++y) {
          packed.push_back({std::ssize(packed) + 1, 0});
          expected[static_cast<std::size_t>(instance * 128 + x + y * 256)] = packed.back();
        }
    HostPacker().unpack(plan, packed.data(), memory.data(), count);
    EXPECT_EQ(memory, expected) << count;
  }
}

TEST(PackPlan, PartsAreForPlacesThatDoNotOverlap) {
  const auto free_repetitions = [](const char* text) {
    return plan_of(text).program().entry(1).free_repetitions;
  };
  constexpr auto kAny = std::numeric_limits<std::int64_t>::max();
  // Records side by side, and interleaved records.
  EXPECT_EQ(free_repetitions("hvector(100,1,64,struct({1,1},{0,20},{double,int}))"), kAny);
  EXPECT_EQ(free_repetitions("hvector(100,1,16,struct({1,1},{0,1608},{double,int}))"), kAny);
  // Two arrays: the first one reaches the second one after a hundred records.
  EXPECT_EQ(free_repetitions("hvector(64,1,8,struct({1,1},{0,800},{double,int}))"), 100);
  // The parts of one record overlap.
  EXPECT_EQ(free_repetitions("hvector(100,1,64,struct({1,1},{0,4},{double,int}))"), 0);
}

TEST(PackPlan, OneInstanceHasNoLoopOverInstances) {
  // The shortest stride is the extent. One instance alone is in tiles nevertheless.
  const auto plan = plan_of("resized(hvector(32,1,8,vector(32,1,32,double)),0,4)");
  EXPECT_EQ(plan.program().root.strided.innermost_height, 2);
  EXPECT_EQ(plan.program().entry(1).strided.innermost_height, 1);
  EXPECT_EQ(&plan.program().entry(2), &plan.program().root);
}

TEST(PackPlan, FewRunsOfTilesAndListsAreAList) {
  for (const char* text :
       {"hvector(4,1,8,vector(4,1,4,double))", "hvector(4,1,100,indexed_block(1,{0,2,5,9},double))",
        "struct({1,1},{0,64},{vector(2,1,3,int),vector(3,1,2,int)})"}) {
    EXPECT_EQ(plan_of(text).program().entry(1).kind, detail::Op::Kind::blocks) << text;
    EXPECT_NE(plan_of(text).program().root.kind, detail::Op::Kind::blocks) << text;
  }
  // Neither rows in order nor many tiles become a list.
  for (const char* text :
       {"subarray(C,{8,8,8},{3,3,3},{1,1,1},double)", "hvector(16,1,8,vector(16,1,16,double))"})
    EXPECT_EQ(plan_of(text).program().entry(1).kind, detail::Op::Kind::strided) << text;
}

TEST(PackPlan, ListsAreSplitWhereTheirRunsChange) {
  // 40 runs of 24 bytes, then 40 runs of 8 bytes. As multiples of 8 bytes together, they would be
  // twice the number of runs.
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
  // FLASH: the 24 variables of a point are neighbours in memory, and far apart in the packed bytes.
  EXPECT_EQ(innermost_of("hvector(24,1,8,hvector(80,1,786432,hvector(8,1,49152,hvector(8,1,3072,"
                         "hvector(8,1,192,double)))))"),
            4);
  EXPECT_EQ(innermost_of("hvector(16,1,8,vector(16,1,16,double))"), 1);
  EXPECT_EQ(innermost_of("subarray(C,{16,16,16},{8,8,4},{0,0,0},double)"), 0);
  // Whole cache lines in either order.
  EXPECT_EQ(innermost_of("hvector(16,1,64,vector(16,8,128,double))"), 0);
}

TEST(PackPlan, SmallStructsAreTakenApart) {
  // Runs of 1 and 12 bytes, since double and int adjoin. They become atoms of 1, 8 and 4 bytes in
  // one loop.
  const auto plan = plan_of("struct({1,1,1},{0,8,16},{char,double,int})");
  const auto& root = plan.program().root;
  EXPECT_EQ(root.kind, detail::Op::Kind::repeat);
  EXPECT_TRUE(root.parts.empty());
  ASSERT_EQ(root.groups.size(), 1u);
  ASSERT_EQ(root.groups[0].size, 3u);
  EXPECT_EQ(root.groups[0].atoms[0], (detail::Atom{8, 1, 8}));
  EXPECT_EQ(root.groups[0].atoms[1], (detail::Atom{16, 9, 4}));
  EXPECT_EQ(root.groups[0].atoms[2], (detail::Atom{0, 0, 1}));

  // Long runs and strided members have their own loops, over chunks of instances.
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
