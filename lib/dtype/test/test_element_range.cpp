// SPDX-License-Identifier: BSD-3-Clause
// Tests types that select ranges of basic elements.
#include "dtype/reconstruct/element_range.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "dtype/type_map.hpp"
#include "support/error.hpp"

namespace halocline::dtype {
namespace {

// Returns the expected entries one by one, from the repeated type map.
std::vector<TypeMap::Entry> expected(const TypeMap& map, const std::vector<ElementRange>& ranges) {
  std::vector<TypeMap::Entry> out;
  const auto each = std::ssize(map.entries);
  for (const auto& range : ranges)
    for (auto i = range.first; i < range.last; ++i) {
      auto entry = map.entries[static_cast<std::size_t>(i % each)];
      entry.displacement += i / each * map.extent;
      out.push_back(entry);
    }
  return out;
}

void expect_ranges(const char* text, const std::vector<ElementRange>& ranges) {
  const auto expr = parse_type(text);
  const auto map = type_map(*expr);
  EXPECT_EQ(basic_element_count(*expr), std::ssize(map.entries)) << text;
  const auto cut = element_ranges(*expr, ranges);
  SCOPED_TRACE(std::string(text) + " cut to " + to_string(*cut));
  const auto entries = type_map(*cut).entries;
  const auto right = expected(map, ranges);
  ASSERT_EQ(entries.size(), right.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(entries[i].type->name, right[i].type->name) << i;
    EXPECT_EQ(entries[i].displacement, right[i].displacement) << i;
  }
}

const char* const kTypes[] = {
    "int",
    "double_int",
    "contiguous(3,double)",
    "vector(4,2,5,int)",
    "vector(4,3,-5,short)",
    "resized(vector(2,1,3,double),-8,80)",
    "resized(int,4,-12)",
    "hvector(3,2,53,contiguous(4,byte))",
    "indexed({2,0,3,1},{7,0,1,20},float)",
    "indexed_block(2,{9,0,4},vector(2,1,2,int))",
    "struct({2,1,3},{0,40,64},{int,vector(3,1,2,double),short_int})",
    "subarray(C,{5,6,7},{2,3,4},{1,2,0},double)",
    "bucket(4,{1,0,4,2},int)",
    "triangular(4,1,1,6,vector(2,1,2,short))",
    "circular_vector(3,2,5,20,7,int)",
    "vector(3,2,4,struct({1,2},{0,8},{char,double}))",
};

TEST(ElementRanges, AreThoseOfTheRepeatedTypeMap) {
  std::mt19937 random(20261123);
  for (const auto* text : kTypes) {
    const auto each = basic_element_count(*parse_type(text));
    for (std::int64_t first = 0; first <= 2 * each; ++first)
      for (auto last = first; last <= 2 * each + 1; ++last) expect_ranges(text, {{first, last}});
    for (int i = 0; i < 20; ++i) {
      std::vector<ElementRange> ranges;
      for (auto n = random() % 5; n > 0; --n) {
        const auto first = static_cast<std::int64_t>(random() % 40);
        ranges.push_back({first, first + static_cast<std::int64_t>(random() % 40)});
      }
      expect_ranges(text, ranges);
    }
  }
}

// Any counts take only a few nodes.
TEST(ElementRanges, NeedNoExpansion) {
  const auto expr = parse_type("vector(268435456,1,2,vector(268435456,1,2,byte))");
  const std::int64_t k28 = 1 << 28;
  EXPECT_EQ(basic_element_count(*expr), k28 * k28);
  const auto cut = element_ranges(*expr, {{5 * k28 + 1, 9 * k28 - 1}});
  EXPECT_LT(to_string(*cut).size(), 400u) << to_string(*cut);
}

TEST(ElementRanges, OfRanksInAnyOrderAreOneList) {
  // Two ints of each of four ranks in the order 0, 2, 1, 3 (errata C.3).
  const auto expr = parse_type("int");
  expect_ranges("int", {{0, 2}, {4, 6}, {2, 4}, {6, 8}});
  EXPECT_EQ(to_string(*element_ranges(*expr, {{0, 2}, {2, 4}, {4, 6}, {6, 8}})),
            to_string(*element_ranges(*expr, {{0, 8}})));
}

TEST(ElementRanges, RefuseWhatIsNone) {
  const auto expr = parse_type("int"), none = parse_type("contiguous(0,int)");
  EXPECT_THROW(element_ranges(*expr, {{-1, 2}}), ConfigError);
  EXPECT_THROW(element_ranges(*expr, {{3, 2}}), ConfigError);
  EXPECT_THROW(element_ranges(*expr, {{0, std::int64_t{1} << 60}}), ConfigError);
  EXPECT_THROW(element_ranges(*none, {{0, 1}}), ConfigError);
  EXPECT_EQ(type_map(*element_ranges(*none, {{0, 0}})).size, 0);
}

}  // namespace
}  // namespace halocline::dtype
