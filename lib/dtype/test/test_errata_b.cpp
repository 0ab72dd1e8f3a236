// SPDX-License-Identifier: BSD-3-Clause
// Tests the points where [PEA21] is wrong or silent. ErrataB has each counterexample with its
// numbers, numbered as in the code's comments. Tempi tests the claim that all constructions of one
// object end in one form.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "byte_displacements.hpp"
#include "dtype/datatype.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "dtype/type_map.hpp"
#include "layout.hpp"

namespace halocline::dtype::test {

namespace {

std::vector<unsigned char> counting_bytes(std::size_t length) {
  std::vector<unsigned char> bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<unsigned char>(i * 7 + i / 256);
  return bytes;
}

}  // namespace

TEST(ErrataB, Item1PackedBytesKeepTheOrderOfTheTypeMap) {
  const auto form = form_of("hvector(16,1,8,vector(16,1,16,double))");
  EXPECT_EQ(to_string(*form.nest()), "start 0, run 8, levels [16 x 8 -> 128, 16 x 128 -> 8]");
  EXPECT_EQ(form.runs(), 256);

  std::vector<double> matrix(256), packed(256);
  std::iota(matrix.begin(), matrix.end(), 0.0);
  HostPacker().pack(PackPlan(form), matrix.data(), 1, packed.data());
  for (std::size_t row = 0; row < 16; ++row)
    for (std::size_t column = 0; column < 16; ++column)
      ASSERT_EQ(packed[column * 16 + row], matrix[row * 16 + column]) << row << ", " << column;
}

TEST(ErrataB, Item2RemovedLevelsLeaveTheirOffset) {
  EXPECT_EQ(nest_of("subarray(C,{16,16,16},{1,8,8},{5,2,3},double)").start, 10520);
  EXPECT_EQ(nest_of("subarray(C,{16,16,16},{8,1,8},{2,5,3},double)").start, 4760);
}

TEST(ErrataB, Item3ExtentSeparatesTheInstances) {
  const auto form = form_of("subarray(C,{16},{4},{5},double)");
  EXPECT_TRUE(form.nest()->contiguous());
  const PackPlan plan(form);
  EXPECT_EQ(plan.program().start, 40);
  EXPECT_EQ(plan.program().root.strided.run, 32);
  EXPECT_EQ(plan.program().root.strided.levels, (std::vector<LoopLevel>{{1, 128, 32}}));

  const auto memory = counting_bytes(256);
  std::vector<unsigned char> packed(64);
  HostPacker().pack(plan, memory.data(), 2, packed.data());
  EXPECT_EQ(std::memcmp(packed.data(), memory.data() + 40, 32), 0);
  EXPECT_EQ(std::memcmp(packed.data() + 32, memory.data() + 168, 32), 0);
}

TEST(ErrataB, Item4TheDenseLeafIsInnermost) {
  const auto nest = nest_of("subarray(C,{8,8,8},{2,3,4},{0,0,0},float)");
  EXPECT_EQ(nest.run, 16);
  EXPECT_EQ(nest.levels, (std::vector<LoopLevel>{{3, 32, 16}, {2, 256, 48}}));
}

TEST(ErrataB, Item5WordsDivideAllThatMovesThePointer) {
  const auto word = [](const char* text) { return plan_of(text).word_bytes(); };
  EXPECT_EQ(word("vector(5,2,3,float)"), 4) << "stride 12 is not a multiple of the 8-byte block";
  EXPECT_EQ(word("vector(5,2,4,float)"), 8);
  EXPECT_EQ(word("vector(5,4,8,float)"), 16);
  EXPECT_EQ(word("subarray(C,{16},{4},{1},float)"), 4) << "start 4";
  EXPECT_EQ(word("resized(vector(4,2,4,double),0,131)"), 1) << "extent 131";
  EXPECT_EQ(word("resized(contiguous(3,double),0,32)"), 8) << "size 24: where instance 1 is put";
}

TEST(ErrataB, Item6StridesAre64Bit) {
  constexpr std::int64_t kStride = std::int64_t{3} << 30;
  const auto expr = parse_type("hvector(3,2,3221225472,double)");
  const auto form = form_of(*expr);
  const auto nest = *form.nest();
  EXPECT_EQ(nest.levels, (std::vector<LoopLevel>{{3, kStride, 16}}));
  EXPECT_EQ(nest.bounds.extent, 2 * kStride + 16);

  // Only address space is taken; memory is taken for touched pages.
  const auto length = static_cast<std::size_t>(2 * nest.bounds.extent);
  void* const memory = mmap(nullptr, length, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  // With limited address space (ulimit -v), rows 3 GiB apart fit nowhere. The plan's numbers have
  // been checked before.
  if (memory == MAP_FAILED) GTEST_SKIP() << "no 12 GiB of address space";
  const auto at = [&](std::int64_t byte) {
    return reinterpret_cast<double*>(static_cast<std::byte*>(memory) + byte);
  };
  std::vector<double> values(12), packed(12);
  std::iota(values.begin(), values.end(), 1.0);
  const PackPlan plan(form);
  HostPacker().unpack(plan, values.data(), memory, 2);
  EXPECT_EQ(*at(2 * kStride + 8), 6.0);
  EXPECT_EQ(*at(nest.bounds.extent), 7.0);
  EXPECT_EQ(*at(nest.bounds.extent + 2 * kStride + 8), 12.0);
  HostPacker().pack(plan, memory, 2, packed.data());
  EXPECT_EQ(packed, values);

  // Displacements in a list exceed 32 bits, too.
  const auto list = plan_of("hindexed_block(1,{0,3221225472,5368709120,24},double)");
  packed.assign(12, 0);
  for (const std::int64_t byte :
       {std::int64_t{0}, kStride, std::int64_t{5} << 30, std::int64_t{24}})
    *at(byte) = static_cast<double>(byte);
  HostPacker().pack(list, memory, 1, packed.data());
  EXPECT_EQ((std::vector<double>(packed.begin(), packed.begin() + 4)),
            (std::vector<double>{0, 3221225472, 5368709120, 24}));
  values = {1, 2, 3, 4};
  HostPacker().unpack(list, values.data(), memory, 1);
  EXPECT_EQ(*at(kStride), 2.0);
  EXPECT_EQ(*at(24), 4.0);
  munmap(memory, length);
}

TEST(ErrataB, Item6NegativeAndZeroStridesAndCounts) {
  EXPECT_EQ(to_string(nest_of("vector(3,1,-1,byte)")), "start 0, run 1, levels [3 x -1 -> 1]");
  EXPECT_EQ(nest_of("vector(3,1,-1,byte)").bounds.lb, -2);
  EXPECT_EQ(to_string(nest_of("hvector(3,1,0,int)")), "start 0, run 4, levels [3 x 0 -> 4]");
  EXPECT_EQ(to_string(nest_of("hvector(3,1,2,int)")), "start 0, run 4, levels [3 x 2 -> 4]");
  for (const auto* empty : {"contiguous(0,int)", "vector(3,0,5,int)", "hvector(0,2,-8,double)"}) {
    EXPECT_EQ(nest_of(empty), LoopNest{}) << empty;
    EXPECT_EQ(plan_of(empty).packed_bytes(3), 0) << empty;
  }
  const auto resized = nest_of("resized(int,-8,-4)");
  EXPECT_EQ(resized.bounds.lb, -8);
  EXPECT_EQ(resized.bounds.extent, -4);

  const unsigned char memory[] = {10, 11, 12, 13, 14};
  unsigned char packed[6] = {};
  HostPacker().pack(plan_of("vector(3,1,-1,byte)"), memory + 2, 1, packed);
  EXPECT_EQ(std::memcmp(packed, "\x0c\x0b\x0a", 3), 0);
  HostPacker().pack(plan_of("hvector(3,2,1,byte)"), memory, 1, packed);
  EXPECT_EQ(std::memcmp(packed, "\x0a\x0b\x0b\x0c\x0c\x0d", 6), 0);
}

TEST(ErrataB, Item7PairTypesAreNotDense) {
  const auto nest = nest_of("double_int");
  EXPECT_EQ(nest.run, 12);
  EXPECT_TRUE(nest.contiguous());
  EXPECT_EQ(nest.bounds.extent, 16);
  EXPECT_EQ(to_string(nest_of("contiguous(4,double_int)")),
            "start 0, run 12, levels [4 x 16 -> 12]");
  EXPECT_EQ(to_string(nest_of("contiguous(4,2int)")), "start 0, run 32, levels []");
  // short_int has a gap inside.
  EXPECT_EQ(form_of("short_int").runs(), 2);
  EXPECT_EQ(form_of("vector(2,1,3,short_int)").runs(), 4);
}

namespace {

// Expects that all constructions have the layout of the first one. Resized to its lb and extent,
// all have its nest and its plan.
void expect_one_form(const std::vector<std::string>& constructions) {
  const auto first_form = form_of(constructions.front());
  const auto first = first_form.nest().value();
  const auto resize = ",0," + std::to_string(first.bounds.extent) + ")";
  for (const auto& text : constructions) {
    SCOPED_TRACE(text);
    const auto nest = nest_of(text);
    EXPECT_EQ(byte_displacements(type_map(*parse_type(text)), 1),
              byte_displacements(type_map(*parse_type(constructions.front())), 1));
    EXPECT_EQ(nest.start, first.start);
    EXPECT_EQ(nest.run, first.run);
    EXPECT_EQ(nest.levels, first.levels);

    const auto resized = make_datatype(*parse_type("resized(" + text + resize));
    EXPECT_EQ(canonicalize(std::get<TypeTree>(translate(resized.get()))), first_form);
    EXPECT_EQ(std::get<PackPlan>(make_plan(resized.get())), PackPlan(first_form));
  }
}

// The object of section 2: E = 13 x 7 x 5 floats in an allocation of A = 80 bytes (20 floats) x 11
// x 6. Subarray arguments are reversed, innermost last, as MPI_ORDER_C wants them. A0 is in bytes
// throughout (errata B.10). Rows by subarray are as long as the allocation; all other rows have an
// extent of E0 floats.
const std::vector<std::string> kTightRows = {"contiguous(13,float)", "contiguous(52,byte)",
                                             "vector(1,13,1,float)", "vector(13,4,4,byte)",
                                             "hvector(52,1,1,byte)"};
const std::vector<std::string> kSubarrayRows = {"subarray(C,{20},{13},{0},float)",
                                                "subarray(C,{80},{52},{0},byte)"};

std::vector<std::string> planes() {
  std::vector<std::string> out = {
      "subarray(C,{11,20},{7,13},{0,0},float)",
      "subarray(C,{11,80},{7,52},{0,0},byte)",
      "vector(7,13,20,float)",
      "vector(7,52,80,byte)",
  };
  for (const auto& row : kTightRows) out.push_back("hvector(7,1,80," + row + ")");
  for (const auto& row : kSubarrayRows) {
    out.push_back("hvector(7,1,80," + row + ")");
    out.push_back("vector(7,1,1," + row + ")");
    out.push_back("contiguous(7," + row + ")");
    out.push_back("subarray(C,{11},{7},{0}," + row + ")");
  }
  return out;
}

}  // namespace

TEST(Tempi, Section2Rows) {
  auto rows = kTightRows;
  rows.insert(rows.end(), kSubarrayRows.begin(), kSubarrayRows.end());
  EXPECT_EQ(to_string(nest_of(rows.front())), "start 0, run 52, levels []");
  expect_one_form(rows);
}

TEST(Tempi, Section2Planes) {
  EXPECT_EQ(to_string(nest_of(planes().front())), "start 0, run 52, levels [7 x 80 -> 52]");
  expect_one_form(planes());
}

TEST(Tempi, Section2Cuboids) {
  std::vector<std::string> cuboids = {"subarray(C,{6,11,20},{5,7,13},{0,0,0},float)",
                                      "subarray(C,{6,11,80},{5,7,52},{0,0,0},byte)"};
  for (const auto& plane : planes()) cuboids.push_back("hvector(5,1,880," + plane + ")");
  EXPECT_EQ(to_string(nest_of(cuboids.front())),
            "start 0, run 52, levels [7 x 80 -> 52, 5 x 880 -> 364]");
  expect_one_form(cuboids);
}

TEST(Tempi, Figure2Fragments) {
  const std::vector<std::string> fragments = {
      "subarray(C,{1024,512,256},{47,13,100},{0,0,0},byte)",
      "vector(47,1,1,subarray(C,{512,256},{13,100},{0,0},byte))",
      "hvector(47,1,131072,hvector(13,1,256,vector(100,1,1,byte)))"};
  EXPECT_EQ(to_string(nest_of(fragments.front())),
            "start 0, run 100, levels [13 x 256 -> 100, 47 x 131072 -> 1300]");
  expect_one_form(fragments);
}

}  // namespace halocline::dtype::test
