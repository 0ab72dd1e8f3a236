// SPDX-License-Identifier: BSD-3-Clause
// Tests the number of instances of a type that hold no byte twice.
#include "dtype/pack/disjoint.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "dtype/type_map.hpp"
#include "layout.hpp"
#include "random_call.hpp"

namespace halocline::dtype::test {

namespace {

constexpr auto kAny = std::numeric_limits<std::int64_t>::max();

std::int64_t disjoint(const char* type) {
  return disjoint_instances(plan_of(type));
}

// Tells if `count` instances hold no byte twice, by the type map.
bool are_disjoint(const TypeMap& map, std::int64_t count) {
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  for (std::int64_t i = 0; i < count; ++i)
    for (const auto& entry : map.entries)
      places.emplace_back(entry.displacement + i * map.extent, entry.type->size);
  std::sort(places.begin(), places.end());
  for (std::size_t i = 1; i < places.size(); ++i)
    if (places[i].first < places[i - 1].first + places[i - 1].second) return false;
  return true;
}

}  // namespace

TEST(DisjointInstances, AreAllWhereEachEndsBeforeTheNext) {
  EXPECT_EQ(disjoint("vector(10,1,2,double)"), kAny);
  EXPECT_EQ(disjoint("vector(10,1,-2,double)"), kAny);
  EXPECT_EQ(disjoint("indexed({1,2,1},{7,0,4},int)"), kAny);
  EXPECT_EQ(disjoint("struct({1,1},{0,8},{vector(9,1,2,double),vector(9,1,2,double)})"), kAny);
  EXPECT_EQ(disjoint("resized(indexed({1,2,1},{7,0,4},int),0,-32)"), kAny);
}

TEST(DisjointInstances, AreColumnsUpToTheLengthOfARow) {
  EXPECT_EQ(disjoint("resized(vector(10,1,7,double),0,8)"), 7);
  EXPECT_EQ(disjoint("resized(vector(10,2,7,double),0,8)"), 1);
  EXPECT_EQ(disjoint("resized(vector(10,2,7,double),0,-16)"), 3);
  // An instance has two columns.
  EXPECT_EQ(disjoint("resized(hvector(2,1,8,vector(10,1,7,double)),0,16)"), 3);
}

TEST(DisjointInstances, AreUpToTheNextPlaceOfListsThatInterleave) {
  EXPECT_EQ(disjoint("resized(indexed({1,1,1,1},{0,3,8,17},double),0,8)"), 3);
  EXPECT_EQ(disjoint("resized(indexed({1,1,1,1},{8,0,17,3},double),0,8)"), 3);
  // Arrays of 1000 particles each; then four bytes of either member in turn.
  EXPECT_EQ(disjoint("resized(struct({1,1,1},{0,8000,16000},{double,double,double}),0,8)"), 1000);
  EXPECT_EQ(disjoint("resized(struct({1,1},{0,20},{int,int}),0,8)"), kAny);
}

TEST(DisjointInstances, AreNoneOfATypeThatHoldsAByteTwice) {
  EXPECT_EQ(disjoint("hvector(4,1,4,double)"), 0);
  EXPECT_EQ(disjoint("indexed({2,1},{0,1},int)"), 0);
  EXPECT_EQ(disjoint("struct({1,1},{0,4},{double,int})"), 0);
  EXPECT_EQ(disjoint("indexed({1,1,1},{5,0,5},int)"), 0);
}

TEST(DisjointInstances, AreThoseOfTheTypeMapOfRandomTypes) {
  constexpr int kTypes = 3000;
  constexpr std::int64_t kMost = 6;
  int too_few = 0;
  CallGenerator generator(35);
  for (int i = 0; i < kTypes; ++i) {
    const auto expr = lowered(generator.next().expr);
    const auto map = type_map(*expr);
    const auto found = disjoint_instances(make_plan(*expr));
    EXPECT_EQ(found > 0, are_disjoint(map, 1)) << to_string(*expr);
    EXPECT_TRUE(are_disjoint(map, std::min(found, kMost))) << found << " of " << to_string(*expr);
    if (found < kMost && are_disjoint(map, found + 1)) ++too_few;
    if (HasFailure()) break;
  }
  EXPECT_LT(too_few, kTypes / 100);
}

}  // namespace halocline::dtype::test
