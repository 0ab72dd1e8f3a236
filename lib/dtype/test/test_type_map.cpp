// SPDX-License-Identifier: BSD-3-Clause
// Tests the type map, the oracle of all tests, with hand-written expectations. Most are examples of
// MPI-3.1 section 4.1.
#include <gtest/gtest.h>

#include <string_view>
#include <utility>
#include <vector>

#include "byte_displacements.hpp"
#include "dtype/type_map.hpp"
#include "dtype/type_tree.hpp"

namespace halocline::dtype::test {

namespace {

using Entries = std::vector<std::pair<std::string_view, std::int64_t>>;

Entries entries_of(const char* text) {
  Entries out;
  for (const auto& entry : type_map(*parse_type(text)).entries)
    out.emplace_back(entry.type->name, entry.displacement);
  return out;
}

// Compares both computations of the bounds: the type map's entry by entry, and the engine's from
// the constructor arguments.
void expect_bounds(const char* text, const TypeBounds& expected) {
  const auto expr = parse_type(text);
  const auto map = type_map(*expr);
  EXPECT_EQ((TypeBounds{map.size, map.lb, map.extent, map.true_lb, map.true_extent}), expected)
      << text << ": size " << map.size << ", lb " << map.lb << ", extent " << map.extent
      << ", true lb " << map.true_lb << ", true extent " << map.true_extent;
  EXPECT_EQ(type_bounds(*expr), expected) << text;
}

// The running example of the standard: {(double, 0), (char, 8)} with extent 16.
#define HALOCLINE_OLDTYPE "struct({1,1},{0,8},{double,char})"

}  // namespace

TEST(TypeMap, Contiguous) {  // Example 4.2
  EXPECT_EQ(
      entries_of("contiguous(3," HALOCLINE_OLDTYPE ")"),
      (Entries{
          {"double", 0}, {"char", 8}, {"double", 16}, {"char", 24}, {"double", 32}, {"char", 40}}));
}

TEST(TypeMap, Vector) {  // Example 4.3
  EXPECT_EQ(entries_of("vector(2,3,4," HALOCLINE_OLDTYPE ")"), (Entries{{"double", 0},
                                                                        {"char", 8},
                                                                        {"double", 16},
                                                                        {"char", 24},
                                                                        {"double", 32},
                                                                        {"char", 40},
                                                                        {"double", 64},
                                                                        {"char", 72},
                                                                        {"double", 80},
                                                                        {"char", 88},
                                                                        {"double", 96},
                                                                        {"char", 104}}));
}

TEST(TypeMap, VectorWithNegativeStride) {  // Example 4.4
  const auto* text = "vector(3,1,-2," HALOCLINE_OLDTYPE ")";
  EXPECT_EQ(entries_of(text), (Entries{{"double", 0},
                                       {"char", 8},
                                       {"double", -32},
                                       {"char", -24},
                                       {"double", -64},
                                       {"char", -56}}));
  expect_bounds(text, {27, -64, 80, -64, 73});
}

TEST(TypeMap, HvectorStrideIsInBytes) {
  EXPECT_EQ(entries_of("hvector(2,2,53,short)"),
            (Entries{{"short", 0}, {"short", 2}, {"short", 53}, {"short", 55}}));
  expect_bounds("hvector(2,2,53,short)", {8, 0, 58, 0, 57});
}

TEST(TypeMap, Indexed) {  // Example 4.5
  EXPECT_EQ(entries_of("indexed({3,1},{4,0}," HALOCLINE_OLDTYPE ")"), (Entries{{"double", 64},
                                                                               {"char", 72},
                                                                               {"double", 80},
                                                                               {"char", 88},
                                                                               {"double", 96},
                                                                               {"char", 104},
                                                                               {"double", 0},
                                                                               {"char", 8}}));
}

TEST(TypeMap, IndexedFamily) {
  const Entries expected = {{"int", 24}, {"int", 28}, {"int", 0}, {"int", 4}};
  EXPECT_EQ(entries_of("indexed({2,2},{6,0},int)"), expected);
  EXPECT_EQ(entries_of("hindexed({2,2},{24,0},int)"), expected);
  EXPECT_EQ(entries_of("indexed_block(2,{6,0},int)"), expected);
  EXPECT_EQ(entries_of("hindexed_block(2,{24,0},int)"), expected);
  EXPECT_EQ(entries_of("struct({2,2},{24,0},{int,int})"), expected);
  for (const auto* text :
       {"indexed({2,2},{6,0},int)", "hindexed({2,2},{24,0},int)", "indexed_block(2,{6,0},int)",
        "hindexed_block(2,{24,0},int)", "struct({2,2},{24,0},{int,int})"})
    expect_bounds(text, {16, 0, 32, 0, 32});
}

TEST(TypeMap, Struct) {  // Example 4.7
  EXPECT_EQ(entries_of("struct({2,1,3},{0,16,26},{float," HALOCLINE_OLDTYPE ",char})"),
            (Entries{{"float", 0},
                     {"float", 4},
                     {"double", 16},
                     {"char", 24},
                     {"char", 26},
                     {"char", 27},
                     {"char", 28}}));
}

TEST(TypeMap, SubarrayOrders) {
  const Entries expected = {{"int", 24}, {"int", 28}, {"int", 40}, {"int", 44}};
  EXPECT_EQ(entries_of("subarray(C,{3,4},{2,2},{1,2},int)"), expected);
  EXPECT_EQ(entries_of("subarray(F,{4,3},{2,2},{2,1},int)"), expected);
  expect_bounds("subarray(C,{3,4},{2,2},{1,2},int)", {16, 0, 48, 24, 24});
}

TEST(TypeMap, DarrayBlock) {  // section 4.1.4
  const auto* text = "darray(2,1,{5},{block},{default},{2},C,int)";
  EXPECT_EQ(entries_of(text), (Entries{{"int", 12}, {"int", 16}}));
  expect_bounds(text, {8, 0, 20, 12, 8});
  EXPECT_EQ(entries_of("darray(3,2,{5},{block},{2},{3},C,int)"), (Entries{{"int", 16}}));
  expect_bounds("darray(3,2,{5},{block},{3},{3},C,int)", {0, 0, 20, 0, 0});  // nothing is left
  expect_bounds("darray(4,3,{5},{block},{default},{4},C,int)", {0, 0, 20, 0, 0});
}

TEST(TypeMap, DarrayCyclic) {
  EXPECT_EQ(entries_of("darray(3,2,{7},{cyclic},{default},{3},C,short)"),
            (Entries{{"short", 4}, {"short", 10}}));
  // Blocks of two for two processes, the last block is shorter: 0 1 | 2 3 | 4 5 | 6.
  EXPECT_EQ(entries_of("darray(2,0,{7},{cyclic},{2},{2},C,byte)"),
            (Entries{{"byte", 0}, {"byte", 1}, {"byte", 4}, {"byte", 5}}));
  const auto* text = "darray(2,1,{7},{cyclic},{2},{2},C,byte)";
  EXPECT_EQ(entries_of(text), (Entries{{"byte", 2}, {"byte", 3}, {"byte", 6}}));
  expect_bounds(text, {3, 0, 7, 2, 5});
}

TEST(TypeMap, DarrayInSeveralDimensions) {
  // Process 4 of a 2 x 3 grid is (1, 1): rows 2 and 3, columns 2 and 3.
  EXPECT_EQ(entries_of("darray(6,4,{4,6},{block,cyclic},{default,2},{2,3},C,byte)"),
            (Entries{{"byte", 14}, {"byte", 15}, {"byte", 20}, {"byte", 21}}));
  EXPECT_EQ(entries_of("darray(6,4,{4,6},{block,cyclic},{default,2},{2,3},F,byte)"),
            (Entries{{"byte", 10}, {"byte", 11}, {"byte", 14}, {"byte", 15}}));
  EXPECT_EQ(entries_of("darray(2,1,{2,3},{none,block},{default,2},{1,2},C,byte)"),
            (Entries{{"byte", 2}, {"byte", 5}}));
  // The grid of processes is in row-major order for Fortran's arrays, too.
  EXPECT_EQ(entries_of("darray(6,1,{2,3},{block,block},{default,default},{2,3},F,byte)"),
            (Entries{{"byte", 2}}));
  // Uneven in both dimensions, over a type with gaps.
  const auto* text = "darray(4,2,{3,3},{cyclic,cyclic},{default,2},{2,2},C,resized(short,0,10))";
  EXPECT_EQ(entries_of(text), (Entries{{"short", 30}, {"short", 40}}));
  expect_bounds(text, {4, 0, 90, 30, 12});
}

TEST(TypeMap, TypesWithAHole) {
  EXPECT_EQ(entries_of("contiguous(2,short_int)"),
            (Entries{{"short", 0}, {"int", 4}, {"short", 8}, {"int", 12}}));
}

TEST(TypeMap, ExtentIsPaddedToTheAlignment) {  // section 4.1.6
  expect_bounds("struct({1,1},{0,4},{int,char})", {5, 0, 8, 0, 5});
  expect_bounds(HALOCLINE_OLDTYPE, {9, 0, 16, 0, 9});
  expect_bounds("struct({1,1},{4,8},{int,char})", {5, 4, 8, 4, 5});
  expect_bounds("double_int", {12, 0, 16, 0, 12});
  expect_bounds("short_int", {6, 0, 8, 0, 8});
}

TEST(TypeMap, MarkersHideTheNaturalBounds) {  // section 4.1.7
  expect_bounds("resized(int,-3,9)", {4, -3, 9, 0, 4});
  expect_bounds("contiguous(2,resized(int,-3,9))", {8, -3, 18, 0, 13});
  EXPECT_EQ(entries_of("contiguous(2,resized(int,-3,9))"), (Entries{{"int", 0}, {"int", 9}}));
  // One marked member is enough. With several, the least lb and the greatest ub count.
  expect_bounds("struct({1,1},{0,32},{resized(int,-3,9),double})", {12, -3, 9, 0, 40});
  expect_bounds("struct({1,1},{0,32},{resized(int,-3,9),resized(double,1,2)})",
                {12, -3, 38, 0, 40});
  // A resized type cannot lose its markers, but can get new ones.
  expect_bounds("resized(contiguous(2,resized(int,-3,9)),0,1)", {8, 0, 1, 0, 13});
  // Extents smaller than the data, and negative extents.
  expect_bounds("contiguous(3,resized(double,0,2))", {24, 0, 6, 0, 12});
  expect_bounds("contiguous(2,resized(int,0,-8))", {8, -8, 0, -8, 12});
}

TEST(TypeMap, TypesWithoutData) {
  expect_bounds("contiguous(0,int)", {});
  expect_bounds("vector(3,0,7,double)", {});
  expect_bounds("struct({0,1},{100,8},{resized(int,-50,1),int})", {4, 8, 4, 8, 4});
  expect_bounds("resized(contiguous(0,int),-4,12)", {0, -4, 12, 0, 0});
  EXPECT_TRUE(byte_displacements(type_map(*parse_type("contiguous(0,int)")), 3).empty());
}

TEST(TypeMap, ByteDisplacementsRepeatByTheExtent) {
  const auto map = type_map(*parse_type("resized(vector(2,1,-2,short),0,-3)"));
  EXPECT_EQ(byte_displacements(map, 2), (std::vector<std::int64_t>{0, 1, -4, -3, -3, -2, -7, -6}));
  EXPECT_TRUE(byte_displacements(map, 0).empty());
}

}  // namespace halocline::dtype::test
