// SPDX-License-Identifier: BSD-3-Clause
// Tests the constructors that MPI does not have (errata C.6) with hand-written positions, and with
// the uses that their authors propose.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "dtype/lower.hpp"
#include "dtype/type_map.hpp"
#include "layout.hpp"
#include "random_call.hpp"
#include "support/error.hpp"

namespace halocline::dtype::test {

namespace {

using Positions = std::vector<std::int64_t>;

Positions positions_of(const TypeExpr& expr) {
  Positions out;
  for (const auto& entry : type_map(expr).entries) out.push_back(entry.displacement);
  return out;
}
Positions positions_of(std::string_view text) {
  return positions_of(*parse_type(text));
}

std::string lowered_text(std::string_view text) {
  return to_string(*lowered(parse_type(text)));
}

}  // namespace

TEST(FurtherTypes, BoundedVectorsEndAtTheBound) {
  EXPECT_EQ(positions_of("bounded_vector(1,2,4,12,byte)"), (Positions{1, 2, 5, 6, 9, 10}));
  EXPECT_EQ(positions_of("bounded_vector(1,2,4,10,byte)"), (Positions{1, 2, 5, 6, 9}));
  EXPECT_EQ(positions_of("bounded_vector(1,2,4,9,byte)"), (Positions{1, 2, 5, 6}));
  EXPECT_EQ(positions_of("bounded_vector(-3,2,4,2,byte)"), (Positions{-3, -2, 1}));
  EXPECT_EQ(positions_of("bounded_vector(4,2,4,4,byte)"), Positions{});
  EXPECT_EQ(positions_of("bounded_vector(0,1,1,3,short)"), (Positions{0, 2, 4}));
}

TEST(FurtherTypes, CircularVectorsGoRound) {
  EXPECT_EQ(positions_of("circular_vector(3,2,3,9,5,byte)"), (Positions{3, 4, 1, 2}));
  EXPECT_EQ(positions_of("circular_vector(4,2,3,9,5,byte)"), (Positions{4, 0, 2, 3}));
  EXPECT_EQ(positions_of("circular_vector(4,2,3,8,5,byte)"), (Positions{4, 0, 2}));
  EXPECT_EQ(positions_of("circular_vector(-1,1,2,9,3,byte)"), (Positions{2, 1, 0, 2, 1}));
  EXPECT_EQ(positions_of("circular_vector(0,5,5,7,2,short)"), (Positions{0, 2, 0, 2, 0, 2, 0}));
}

TEST(FurtherTypes, BucketsStandAtMultiples) {
  EXPECT_EQ(positions_of("bucket(4,{2,0,3},byte)"), (Positions{0, 1, 8, 9, 10}));
  EXPECT_EQ(positions_of("bucket(-2,{0,1,2},short)"), (Positions{-4, -8, -6}));
}

TEST(FurtherTypes, TrianglesGrowAndShrink) {
  EXPECT_EQ(positions_of("triangular(3,1,1,4,byte)"), (Positions{0, 4, 5, 8, 9, 10}));
  EXPECT_EQ(positions_of("triangular(3,2,-1,5,byte)"), (Positions{0, 1, 5}));
  EXPECT_EQ(positions_of("triangular(2,2,0,3,short)"), (Positions{0, 2, 6, 8}));
}

TEST(FurtherTypes, StretchedVectorsShareABuffer) {
  const Positions lengths = {2, 0, 3, 1};
  const auto all = stretched_vectors(3, lengths, parse_type("byte"));
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(positions_of(*all[1]), (Positions{2, 3, 9, 10, 11, 16}));
  Positions together;
  for (const auto& expr : all) {
    const auto positions = positions_of(*expr);
    together.insert(together.end(), positions.begin(), positions.end());
    EXPECT_EQ(std::get<StretchedVector>(expr->node).ends,
              std::get<StretchedVector>(all[0]->node).ends);
  }
  std::sort(together.begin(), together.end());
  Positions whole(18);
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<std::int64_t>(i);
  EXPECT_EQ(together, whole);
}

// The papers use circular and bounded vectors like this: in round k of Bruck's all-to-all, rank r
// sends the blocks at (r + j) mod p for all j with bit k set.
TEST(FurtherTypes, CircularVectorsAreTheRoundsOfBruck) {
  for (std::int64_t p = 1; p <= 17; ++p)
    for (std::int64_t bit = 1; bit < p; bit *= 2)
      for (std::int64_t rank = 0; rank < p; ++rank) {
        Positions expected;
        for (std::int64_t j = 0; j < p; ++j)
          if ((j & bit) != 0) expected.push_back((rank + j) % p);
        const CircularVector t{rank + bit, bit, 2 * bit, rank + p, p, parse_type("byte")};
        ASSERT_EQ(positions_of(*type(t)), expected) << to_string(*type(t));
        ASSERT_EQ(positions_of(*lower(t)), expected) << to_string(*lower(t));
      }
}

TEST(FurtherTypes, AreAFewCallsOfMpi) {
  EXPECT_EQ(lowered_text("bounded_vector(0,2,4,4000,int)"), "hvector(1000,2,16,int)");
  EXPECT_EQ(lowered_text("bounded_vector(1,2,4,4002,int)"),
            "struct({1,1},{4,16004},{hvector(1000,2,16,int),contiguous(1,int)})");
  EXPECT_EQ(lowered_text("bounded_vector(1,2,4,1,int)"), "contiguous(0,int)");
  EXPECT_EQ(
      lowered_text("circular_vector(999,2,4,1999,1000,int)"),
      "struct({1,1,1},{3996,0,12},{contiguous(1,int),contiguous(1,int),hvector(249,2,16,int)})");
  EXPECT_EQ(lowered_text("bucket(4,{2,0,3},int)"), "hindexed({2,0,3},{0,16,32},int)");
  EXPECT_EQ(lowered_text("triangular(3,1,2,6,int)"), "hindexed({1,3,5},{0,24,48},int)");
  EXPECT_EQ(lowered_text("stretched_vector(3,1,{2,1},int)"), "hindexed({2,1},{8,28},int)");
  EXPECT_EQ(lowered_text("dup(bucket(4,{1},bounded_vector(0,1,2,3,int)))"),
            "dup(hindexed({1},{0},hvector(2,1,8,int)))");
}

TEST(FurtherTypes, AreTreesOfTheirOwn) {
  const auto text = [](const char* expr) { return to_string(*translate(*parse_type(expr)).root); };
  EXPECT_EQ(text("bucket(4,{2,0,3},int)"), "bucket(3,16,<2,0,3>,4,leaf(4))");
  EXPECT_EQ(text("triangular(3,1,2,6,int)"), "triangular(3,1,2,24,4,leaf(4))");
  EXPECT_EQ(text("stretched_vector(3,1,{2,1},int)"), "stretched(2,<2,1>,4,12,4,leaf(4))");
}

// A plan holds no more numbers than the constructor.
TEST(FurtherTypes, HaveCompactPlans) {
  constexpr std::int64_t kBuckets = 10000, kOther = 256;
  Bucket bucket{9, {}, parse_type("double")};
  std::mt19937 random(1);
  for (std::int64_t i = 0; i < kBuckets; ++i)
    bucket.counts.push_back(static_cast<std::int64_t>(random() % 8));
  const PackPlan plan(form_of(*type(bucket)));
  EXPECT_LE(plan.metadata_bytes(), 8 * kBuckets + kOther) << to_string(plan);
  EXPECT_GE(PackPlan(form_of(*lower(bucket))).metadata_bytes(), 16 * kBuckets / 2);

  const auto small = plan_of("triangular(100,5,3,1000,double)");
  EXPECT_LE(small.metadata_bytes(), kOther) << to_string(small);
  EXPECT_EQ(plan_of("triangular(1000000000,5,1,1000000010,byte)").metadata_bytes(),
            small.metadata_bytes());
  // This holds also if the elements are no runs.
  EXPECT_LE(plan_of("triangular(100,5,3,1000,vector(3,1,2,double))").metadata_bytes(), kOther);

  const auto vectors = stretched_vectors(8, bucket.counts, bucket.old);
  const std::vector<std::int64_t>* shared = nullptr;
  for (const auto& expr : vectors) {
    const PackPlan stretched(form_of(*expr));
    const auto& rule = stretched.program().entry(1).rule;
    ASSERT_TRUE(rule) << to_string(stretched);
    if (shared == nullptr) shared = rule->ends.get();
    EXPECT_EQ(rule->ends.get(), shared);
  }
}

// Large numbers and nested types take no more time.
TEST(FurtherTypes, AreQuickToTranslate) {
  EXPECT_EQ(lowered_text("triangular(1000000000000,2,0,4,int)"), "hvector(1000000000000,2,16,int)");
  EXPECT_EQ(lowered_text("circular_vector(-2000000000000000000,0,1,0,1,byte)"),
            "contiguous(0,byte)");
  auto expr = parse_type("byte");
  for (int i = 0; i < 40; ++i) expr = type(BoundedVector{0, 2, 2, 3, type(Contiguous{0, expr})});
  EXPECT_EQ(type_bounds(*expr).size, 0);
  // Empty buckets may be far out, but not so far that sums overflow.
  EXPECT_EQ(form_of("bucket(20000000000000000,{7,0,0,0,0,0,0,0,0,0,0},int)").root,
            form_of("contiguous(7,int)").root);
}

TEST(FurtherTypes, WithWrongArgumentsDoNotExist) {
  const auto old = parse_type("int");
  for (const auto& expr :
       {type(BoundedVector{0, 5, 3, 10, old}), type(CircularVector{0, 1, 3, 10, 0, old}),
        type(Bucket{5, {-1, 3}, old}), type(Triangular{5, 3, -1, 5, old}),
        type(Triangular{-1, 3, 1, 5, old})}) {
    EXPECT_THROW(translate(*expr), ConfigError) << to_string(*expr);
    EXPECT_THROW(lowered(expr), ConfigError) << to_string(*expr);
  }
  EXPECT_THROW(stretched_vectors(2, {1, -2}, old), ConfigError);
  EXPECT_THROW(stretched_vectors(0, {1, 2}, old), ConfigError);
}

TEST(FurtherTypes, TooLargeForMpiAreConfigErrors) {
  for (const auto* text :
       {"triangular(1000000000,0,1,0,byte)", "circular_vector(0,1,2,1000000000000,1,byte)"})
    EXPECT_THROW(lowered(parse_type(text)), ConfigError) << text;
}

// Repeated types become loops over their parts.
TEST(FurtherTypes, AreTakenApart) {
  const auto plan = plan_of("hvector(100,1,4096,triangular(20,1,1,24,double))");
  EXPECT_NE(
      to_string(plan).find("100 repetitions, 4096 bytes apart, of\n    atoms of 16, 16, 8, 8"),
      std::string::npos)
      << to_string(plan);
}

TEST(FurtherTypes, WithoutAChangeAreVectors) {
  const auto leaf = tree_node(Leaf{4});
  const TypeTree tree{tree_node(RuleBuc{{20, nullptr, 3, 0, 0, 40}, 4, leaf}),
                      {240, 0, 800, 0, 772}};
  EXPECT_EQ(canonicalize(tree).root, form_of("hvector(20,3,40,int)").root);
}

// Regular types become loops.
TEST(FurtherTypes, AreStridedWhereTheyCanBe) {
  EXPECT_EQ(nest_of("bucket(4,{2,2,2},int)"), nest_of("hvector(3,2,16,int)"));
  EXPECT_EQ(nest_of("triangular(1000000000,2,0,4,int)"), nest_of("vector(1000000000,2,4,int)"));
  EXPECT_EQ(nest_of("stretched_vector(3,0,{2,2,2},int)"), nest_of("vector(3,2,6,int)"));
  EXPECT_EQ(form_of("stretched_vector(1,0,{2,0,3,1,9,4,7,3,8,1,2},int)"),
            form_of("contiguous(40,int)"));
  EXPECT_EQ(nest_of("circular_vector(1,1,2,9,8,int)"), nest_of("bounded_vector(1,1,2,9,int)"));
}

TEST(FurtherTypes, BeyondTheLimitAreConfigErrors) {
  for (const auto* text :
       {"triangular(4000000000,1,1,4000000000,byte)", "bucket(4000000000000000000,{1,1},byte)",
        "bucket(2000000000000000000,{1,0,0,0,0,0,0,0,0,0,0},byte)",
        "stretched_vector(1000000000,0,{2000000000000000000,0,0,0,0,0,0,0,0,0},byte)",
        "bucket(1,{2000000000000000000,2000000000000000000},byte)",
        "stretched_vector(4000000000,1,{4000000000,1},byte)",
        "bounded_vector(0,1,2,4000000000000000000,byte)",
        "circular_vector(0,1,2,4000000000000000000,9,byte)"})
    EXPECT_THROW(translate(*parse_type(text)), ConfigError) << text;
}

}  // namespace halocline::dtype::test
