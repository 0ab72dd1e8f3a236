// SPDX-License-Identifier: BSD-3-Clause
// Tests type trees with type maps: the displacement of every byte.
#include "dtype/type_tree.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "byte_displacements.hpp"
#include "dtype/datatype.hpp"
#include "dtype/type_map.hpp"
#include "support/error.hpp"
#include "tree_walk.hpp"

namespace halocline::dtype::test {

namespace {

std::string tree_of(const char* text) {
  return to_string(*translate(*parse_type(text)).root);
}

}  // namespace

TEST(TypeTree, FollowsTheConstructors) {
  EXPECT_EQ(tree_of("dup(resized(double,0,40))"), "leaf(8)");
  EXPECT_EQ(tree_of("contiguous(3,double_int)"), "vec(3,16,strc(2,<0,8>,<leaf(8),leaf(4)>))");
  EXPECT_EQ(tree_of("vector(2,3,-4,int)"), "vec(2,-16,vec(3,4,leaf(4)))");
  EXPECT_EQ(tree_of("hvector(2,3,-4,int)"), "vec(2,-4,vec(3,4,leaf(4)))");
  EXPECT_EQ(tree_of("hvector(2,1,9,int)"), "vec(2,9,leaf(4))");
  EXPECT_EQ(tree_of("subarray(C,{16,16,16},{1,8,8},{5,2,3},double)"),
            "idx(1,<10520>,vec(8,128,vec(8,8,leaf(8))))");
  EXPECT_EQ(tree_of("subarray(F,{4,3},{2,3},{0,0},int)"), "vec(3,16,vec(2,4,leaf(4)))");
}

TEST(TypeTree, IndexListsAreBucketsOrIndices) {
  EXPECT_EQ(tree_of("indexed({3,1},{4,0},int)"), "idxbuc(2,<3,1>,<16,0>,4,leaf(4))");
  EXPECT_EQ(tree_of("hindexed({3,0,1},{4,9,-2},resized(int,0,6))"),
            "idxbuc(3,<3,0,1>,<4,9,-2>,6,leaf(4))");
  EXPECT_EQ(tree_of("indexed({2,2},{4,0},int)"), "idx(2,<16,0>,vec(2,4,leaf(4)))");
  EXPECT_EQ(tree_of("hindexed({1,1},{5,-5},int)"), "idx(2,<5,-5>,leaf(4))");
  EXPECT_EQ(tree_of("indexed_block(3,{1,9},int)"), "idx(2,<4,36>,vec(3,4,leaf(4)))");
  EXPECT_EQ(tree_of("hindexed_block(1,{1,9},int)"), "idx(2,<1,9>,leaf(4))");
  EXPECT_EQ(tree_of("indexed({2},{3},int)"), "idx(1,<12>,vec(2,4,leaf(4)))");
  EXPECT_EQ(tree_of("hindexed_block(2,{0},int)"), "vec(2,4,leaf(4))");
  EXPECT_EQ(tree_of("indexed({},{},int)"), "idx(0,<>,leaf(4))");
}

TEST(TypeTree, StructsAndHoles) {
  EXPECT_EQ(tree_of("struct({1,2},{0,8},{int,double})"),
            "strc(2,<0,8>,<leaf(4),vec(2,8,leaf(8))>)");
  EXPECT_EQ(tree_of("struct({2},{8},{vector(2,1,2,int)})"),
            "idx(1,<8>,vec(2,12,vec(2,8,leaf(4))))");
  EXPECT_EQ(tree_of("struct({},{},{})"), "strc(0,<>,<>)");
  EXPECT_EQ(tree_of("short_int"), "strc(2,<0,4>,<leaf(2),leaf(4)>)");
  EXPECT_EQ(tree_of("2int"), "strc(2,<0,4>,<leaf(4),leaf(4)>)");
  const auto equal = translate(*parse_type("contiguous(3,int)"));
  const auto member = type(Contiguous{3, named("int")});
  const auto tree = translate(TypeExpr{Struct{{2, 2}, {0, 100}, {member, member}}});
  const auto& children = std::get<Strc>(tree.root->node).children;
  EXPECT_EQ(children[0], children[1]) << "equal neighbours share their node";
}

TEST(TypeTree, DarraysAreNestsPerDimension) {
  EXPECT_EQ(tree_of("darray(1,0,{6},{block},{default},{1},C,int)"), "vec(6,4,leaf(4))");
  EXPECT_EQ(tree_of("darray(3,1,{6},{block},{default},{3},C,int)"), "idx(1,<8>,vec(2,4,leaf(4)))");
  EXPECT_EQ(tree_of("darray(2,1,{8},{cyclic},{2},{2},C,int)"),
            "idx(1,<8>,vec(2,16,vec(2,4,leaf(4))))");
  EXPECT_EQ(tree_of("darray(2,0,{5},{cyclic},{2},{2},C,int)"),
            "strc(2,<0,16>,<vec(2,4,leaf(4)),leaf(4)>)");
  EXPECT_EQ(tree_of("darray(4,3,{5},{block},{default},{4},C,int)"), "vec(0,4,leaf(4))");
  EXPECT_EQ(tree_of("darray(2,1,{4,5},{none,cyclic},{default,2},{1,2},C,int)"),
            "idx(1,<8>,vec(4,20,vec(2,4,leaf(4))))");
  // MPI-3.1 example 4.7, (CYCLIC(10), *, BLOCK) onto 2 x 1 x 3 processes: process (1, 0, 1).
  EXPECT_EQ(tree_of("darray(6,4,{100,200,300},{cyclic,none,block},{10,default,default},{2,1,3},F,"
                    "byte)"),
            "idx(1,<2000010>,vec(100,20000,vec(200,100,vec(5,20,vec(10,1,leaf(1))))))");
}

TEST(TypeTree, ExpandsToTheTypeMap) {
  constexpr const char* kTypes[] = {
      // Every combiner.
      "short_int", "contiguous(3,short_int)", "resized(dup(vector(2,3,4,long_double_int)),-5,100)",
      "hvector(3,2,53,contiguous(13,byte))", "indexed({2,0,3},{7,1,-2},vector(2,1,2,short))",
      "hindexed({2,1},{9,-23},dup(float))", "indexed_block(2,{0,9,4,4},resized(char,0,3))",
      "hindexed_block(3,{0,24,-48},contiguous(2,float))",
      "struct({1,2,1},{0,8,-64},{int,dup(double),struct({1},{4},{byte})})",
      "subarray(C,{5,4,6},{2,3,4},{1,0,2},int)", "subarray(F,{5,4,6},{2,3,4},{1,0,2},int)",
      "darray(6,4,{5,7},{cyclic,block},{2,default},{2,3},C,short)",
      "darray(6,4,{7,11},{cyclic,cyclic},{2,3},{2,3},F,short)",
      // Strides: negative, zero, overlapping.
      "vector(4,2,-3,int)", "hvector(3,1,0,int)", "hvector(3,2,1,short)",
      "vector(3,2,-1,vector(2,1,-2,byte))", "contiguous(3,resized(int,2,-7))",
      // No data.
      "contiguous(0,int)", "vector(3,0,5,int)", "hvector(0,2,-8,double)",
      "indexed({0,0},{3,4},int)", "indexed({0,1,0},{3,4,5},int)", "indexed({},{},int)",
      "hindexed_block(0,{1,2},int)", "struct({0,1},{100,8},{resized(int,-50,1),int})",
      "struct({1,2},{0,8},{contiguous(0,int),short})", "contiguous(2,indexed({},{},int))",
      "darray(4,3,{5},{block},{2},{4},C,int)",
      // Bounds.
      "contiguous(3,resized(indexed({1,2},{3,0},int),-4,40))",
      "indexed({2,1},{1,-3},resized(struct({1,1},{0,4},{int,char}),4,9))",
      "vector(2,2,3,resized(double,8,-24))", "hindexed({3,1},{0,4},resized(int,0,0))",
      // Nested lists, and structs of strided or indexed types.
      "indexed({1,2},{5,0},indexed({3,1},{0,5},hindexed({1,2},{4,-8},short)))",
      "struct({2,1,3},{64,0,200},{vector(2,1,3,int),indexed({1,2},{2,0},short),short_int})",
      "contiguous(2,struct({1,1},{0,40},{struct({2,1},{0,9},{byte,int}),darray(2,1,{5},{cyclic},"
      "{2},{2},C,short)}))",
      "subarray(C,{3,4},{2,2},{1,1},struct({1,1},{6,0},{short,int}))",
      "darray(2,0,{3},{cyclic},{2},{2},F,struct({1,1},{6,0},{short,int}))",
      // Beyond 32 bits.
      "hvector(3,2,3221225472,double)", "hindexed({2,1},{-6442450944,6442450944},int)",
      "indexed({1,1},{0,2000000000},contiguous(2,double))",
      "struct({1,1},{4294967296,0},{int,short})",
      "subarray(C,{70000,70000},{2,1},{40000,50000},double)",
      "darray(2,1,{100000,50000},{block,cyclic},{default,49998},{1,2},F,byte)"};
  for (const auto* text : kTypes) {
    SCOPED_TRACE(text);
    const auto expr = parse_type(text);
    const auto map = type_map(*expr);
    const auto tree = translate(*expr);
    EXPECT_EQ(tree.bounds,
              (TypeBounds{map.size, map.lb, map.extent, map.true_lb, map.true_extent}));
    EXPECT_EQ(byte_displacements(tree, 2), byte_displacements(map, 2));
  }
}

TEST(TypeTree, CostsNoMoreForLargeCounts) {
  EXPECT_EQ(tree_of("darray(2,0,{2000000000000001},{cyclic},{2},{2},C,int)"),
            "strc(2,<0,8000000000000000>,<vec(500000000000000,16,vec(2,4,leaf(4))),leaf(4)>)");
  EXPECT_EQ(tree_of("contiguous(1000000000000000,int)"), "vec(1000000000000000,4,leaf(4))");
}

TEST(TypeTree, SizesBeyondTheLimitAreConfigErrors) {
  for (const auto* text :
       {"contiguous(2000000000,contiguous(2000000000,contiguous(2000000000,double)))",
        "hvector(2000000000,1,9000000000000000000,double)",
        "resized(int,-9223372036854775808,9223372036854775807)",
        "indexed({1,2},{0,2000000000000000000},double)",
        "hindexed({1,2000000000000000000},{0,8},double)",
        "hindexed_block(1,{9000000000000000000},double)",
        "struct({1,1},{0,-9000000000000000000},{int,int})",
        "subarray(C,{3000000000,3000000000},{1,1},{0,0},double)",
        "darray(2,1,{3000000000,3000000000},{block,cyclic},{default,default},{2,1},C,double)"}) {
    const auto expr = parse_type(text);
    EXPECT_THROW(type_bounds(*expr), ConfigError) << text;
    EXPECT_THROW(translate(*expr), ConfigError) << text;
  }
}

}  // namespace halocline::dtype::test
