// SPDX-License-Identifier: BSD-3-Clause
// Tests type reconstruction [KT15]: the papers' figures, the counterexamples of errata part A, and
// brute force.
//
//   dtype_reconstruct [--sequences N] [--seed S]
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "brute_force.hpp"
#include "dtype/reconstruct/normalize.hpp"
#include "dtype/reconstruct/reconstruct_tree.hpp"
#include "dtype/reconstruct/repeated_prefixes.hpp"
#include "dtype/reconstruct/signature.hpp"
#include "dtype/reconstruct/type_path.hpp"
#include "flags.hpp"

namespace halocline::dtype::test {
namespace {

constexpr Leaf kByte{1};

std::vector<std::int64_t> repeated_lengths(const Displacements& d) {
  std::vector<std::int64_t> lengths;
  for (const auto& prefix : repeated_prefixes({d}).prefixes) lengths.push_back(prefix.length);
  return lengths;
}

Reconstruction path(const Displacements& d, bool idxbuc = false) {
  return reconstruct_path({d}, kByte, {.idxbuc = idxbuc});
}

Displacements strided(std::int64_t count, std::int64_t stride, std::int64_t first = 0) {
  Displacements d;
  for (std::int64_t i = 0; i < count; ++i) d.push_back(first + i * stride);
  return d;
}

Displacements joined(Displacements a, const Displacements& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Displacements moved(Displacements d, std::int64_t by) {
  for (auto& each : d) each += by;
  return d;
}

using Lengths = std::vector<std::int64_t>;

TEST(RepeatedPrefixes, CompareWithTheHeadOfTheSequence) {  // errata A.1
  EXPECT_EQ(repeated_lengths({0, 1, 0, 1, 0, 1, 2, 2}), (Lengths{1, 8}));
}

TEST(RepeatedPrefixes, TryEveryPrime) {  // errata A.2
  EXPECT_EQ(repeated_lengths({0, 3, 4, 7, 1, 4, 3, 6, 7, 10, 4, 7, 4, 7, 8, 11, 5, 8}),
            (Lengths{1, 2, 6, 18}));
}

TEST(RepeatedPrefixes, OfAContiguousSequenceAreAllDivisors) {
  const auto found = repeated_prefixes({strided(720, 4)});
  ASSERT_EQ(found.prefixes.size(), 30U);
  for (const auto& prefix : found.prefixes) EXPECT_EQ(prefix.strided, 720);
  EXPECT_EQ(found.comparisons, 719);
}

TEST(RepeatedPrefixes, DistinguishKinds) {
  const auto d = strided(12, 8);
  const std::vector<std::int32_t> kinds = {0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1};
  const auto found = repeated_prefixes({d, kinds});
  EXPECT_EQ(found.prefixes, (std::vector<RepeatedPrefix>{{3, 12}, {6, 12}, {12, 12}}));
}

TEST(TypePath, OfFigure1) {
  const auto found = path({0, 2, 3, 5, 10, 12, 13, 15, 20, 22, 23, 25, 30, 32, 33, 35});
  EXPECT_EQ(found.cost, 22);
  EXPECT_EQ(to_string(*found.root), "vec(4,10,idx(4,<0,2,3,5>,leaf(1)))");
}

TEST(TypePath, OfFigures2And3) {
  const auto d = joined(strided(18, 1), strided(12, 2, 100));
  EXPECT_EQ(path(d).cost, 42);
  EXPECT_EQ(path(d, true).cost, 38);
}

TEST(TypePath, OfTheSlides) {
  const auto d = joined(strided(6, 1), strided(11, 2, 100));
  EXPECT_EQ(path(d).cost, 29);
  EXPECT_EQ(path(d, true).cost, 26);
  Displacements rows;
  for (std::int64_t i = 0; i < 10; ++i)
    for (const std::int64_t column : {10, 11, 20, 21, 22}) rows.push_back(100 * i + column);
  EXPECT_EQ(path(rows).cost, 23);
}

TEST(TypePath, MayShiftBelowVectors) {  // errata A.4
  Displacements d;
  for (std::int64_t i = 0; i < 100; ++i) d = joined(std::move(d), {5 + 10 * i, 8 + 10 * i});
  const auto found = path(d);
  EXPECT_EQ(found.cost, 20);
  EXPECT_EQ(to_string(*found.root), "vec(100,10,idx(2,<5,8>,leaf(1)))");
}

// Expects that a path is nice [KT15, Lemma 3]: only the first node with displacements shifts. Each
// node at least doubles the length, except for the leaf and an index with one child.
void expect_nice(const TreeNode& path, std::int64_t n) {
  bool is_first = true;
  std::int64_t height = 0;
  for (const auto* node = &path; node != nullptr; ++height) {
    const TreeNodePtr* child = nullptr;
    const auto visit_list = [&](const auto& t) {
      ASSERT_TRUE(is_first || t.displacements.front() == 0) << to_string(path);
      is_first = false;
    };
    std::visit(
        [&](const auto& t) {
          if constexpr (requires { t.displacements; }) visit_list(t);
          if constexpr (requires { t.child; }) child = &t.child;
        },
        node->node);
    node = child == nullptr ? nullptr : child->get();
  }
  ASSERT_LE(height, 2 + static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(n))))
      << to_string(path);
}

TEST(TypePath, IsNiceAndOfLogarithmicHeight) {
  // 2^14 elements, at which vectors cost less than lists of four, one for each doubling.
  Displacements d = {3};
  for (int level = 0; level < 14; ++level)
    d = joined(d, moved(d, (level % 2 == 0 ? 7 : -11) * (std::int64_t{1} << (2 * level))));
  const auto found = reconstruct_path({d}, kByte, {.costs = {.vec = 1}});
  EXPECT_EQ(flatten(*found.root), d);
  EXPECT_EQ(found.cost, 14 * 1 + (6 + 1) + 6) << to_string(*found.root);
  expect_nice(*found.root, std::ssize(d));
}

void expect_right(const Displacements& d, const CostModel& costs) {
  for (const bool idxbuc : {false, true}) {
    const auto found = reconstruct_path({d}, kByte, {.costs = costs, .idxbuc = idxbuc});
    ASSERT_EQ(flatten(*found.root), d);
    ASSERT_EQ(cost(*found.root, costs), found.cost);
    expect_nice(*found.root, std::ssize(d));
    ASSERT_EQ(found.cost, BruteForce(costs, {.idxbuc = idxbuc})(of_one_kind(d)))
        << testing::PrintToString(d) << idxbuc;
  }
}

void expect_right_prefixes(const Displacements& d, const std::vector<std::int32_t>& kinds = {}) {
  auto list = of_one_kind(d);
  for (std::size_t i = 0; i < kinds.size(); ++i) list[i].kind = kinds[i];
  std::vector<RepeatedPrefix> expected;
  for (std::size_t q = 1; q <= d.size(); ++q) {
    if (!is_repeated(list, q)) continue;
    auto end = q;
    while (end < d.size() && d[end] - d[end - q] == d[q] - d[0]) end += q;
    expected.push_back({static_cast<std::int64_t>(q), static_cast<std::int64_t>(end)});
  }
  ASSERT_EQ(repeated_prefixes({d, kinds}).prefixes, expected)
      << testing::PrintToString(d) << testing::PrintToString(kinds);
}

// Calls `function` for all sequences of `n` displacements below `letters`.
template <class Function>
void for_all_sequences(std::size_t n, std::int64_t letters, Function function) {
  Displacements d(n, 0);
  for (;;) {
    function(d);
    std::size_t i = 0;
    while (i < n && ++d[i] == letters) d[i++] = 0;
    if (i == n) return;
  }
}

TEST(TypePath, OfAllShortSequencesCostsTheLeast) {
  for (std::size_t n = 1; n <= 12; ++n)
    for_all_sequences(n, n <= 8 ? 3 : 2, [](const Displacements& d) {
      expect_right_prefixes(d);
      expect_right(d, {});
    });
}

// Compares the cost with brute force, for paths with the nodes that MPI has no constructor for.
void expect_right_with_rules(const Displacements& d, const CostModel& costs) {
  for (int which = 1; which < 8; ++which) {
    const bool bucket = which % 2 == 1, triangular = which / 2 % 2 == 1, idxbuc = which / 4 == 1;
    if (!bucket && !triangular) continue;
    const auto found = reconstruct_path(
        {d}, kByte, {.costs = costs, .idxbuc = idxbuc, .bucket = bucket, .triangular = triangular});
    ASSERT_EQ(flatten(*found.root), d) << to_string(*found.root);
    ASSERT_EQ(cost(*found.root, costs), found.cost) << to_string(*found.root);
    expect_nice(*found.root, std::ssize(d));
    const Nodes nodes{.idxbuc = idxbuc, .bucket = bucket, .triangular = triangular};
    ASSERT_EQ(found.cost, BruteForce(costs, nodes)(of_one_kind(d)))
        << testing::PrintToString(d) << " " << to_string(*found.root) << which;
  }
}

TEST(TypePath, WithRulesOfAllShortSequencesCostsTheLeast) {
#ifdef __SANITIZE_ADDRESS__
  constexpr std::size_t kOfFour = 3, kOfThree = 5, kOfTwo = 8;
#else
  constexpr std::size_t kOfFour = 6, kOfThree = 8, kOfTwo = 12;
#endif
  const auto letters = [](std::size_t n) { return n <= kOfFour ? 4 : n <= kOfThree ? 3 : 2; };
  for (std::size_t n = 1; n <= kOfTwo; ++n)
    for_all_sequences(n, letters(n), [](const Displacements& d) {
      expect_right_with_rules(d, {});
      // Vectors and indices cost more than rules here.
      expect_right_with_rules(d, {.vec = 9, .idx = 11, .idxbuc = 11, .bucket = 5, .triangular = 7});
    });
}

// Returns a sequence of nested vectors and indices, sometimes with a fault.
Displacements random_sequence(std::mt19937& random, std::size_t longest) {
  const auto below = [&](std::size_t n) { return static_cast<std::int64_t>(random() % n); };
  Displacements d = {0};
  while (below(5) != 0) {
    const auto count = 1 + below(6);
    if (d.size() * static_cast<std::size_t>(count) > longest) break;
    const auto stride = below(12) - 3;
    const bool is_strided = below(2) == 0;
    Displacements next;
    for (std::int64_t i = 0; i < count; ++i)
      next = joined(std::move(next), moved(d, is_strided ? i * stride : below(20)));
    d = std::move(next);
  }
  if (below(4) == 0) d[static_cast<std::size_t>(below(d.size()))] += 1;
  if (below(2) == 0) d = moved(std::move(d), below(5));
  return d;
}

CostModel random_costs(std::mt19937& random) {
  const auto any = [&](std::uint32_t below) { return static_cast<std::int64_t>(random() % below); };
  return {any(12), any(12), any(12), any(12), any(12), any(3), any(12), any(12)};
}

TEST(TypePath, OfRandomSequencesCostsTheLeast) {
#ifdef __SANITIZE_ADDRESS__
  std::int64_t sequences = 10000;
#else
  std::int64_t sequences = 100000;
#endif
  auto seed = halocline::test::seed_of_today();
  halocline::test::read_flags([&](std::string_view flag, std::string_view value) {
    if (flag == "--sequences")
      sequences = halocline::test::number<std::int64_t>(flag, value);
    else if (flag == "--seed")
      seed = halocline::test::number<std::uint64_t>(flag, value);
    else
      return false;
    return true;
  });
  std::printf("seed %llu, %lld sequences\n", static_cast<unsigned long long>(seed),
              static_cast<long long>(sequences));
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  for (std::int64_t i = 0; i < sequences; ++i) {
    const auto d = random_sequence(random, 240);
    expect_right_prefixes(d);
    expect_right(d, i % 2 == 0 ? CostModel{} : random_costs(random));
    if (HasFatalFailure()) return;
  }
}

// Returns buckets or a triangle of random numbers, over one element or over a random sequence.
Displacements random_rule(std::mt19937& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::int64_t>(random() % n); };
  const auto body = below(3) == 0 ? random_sequence(random, 4) : Displacements{0};
  const auto inside = below(7) - 3, distance = below(15) - 5;
  const bool triangular = below(2) == 0;
  const auto change = below(5) - 2;
  Displacements out = body;
  auto length = 1 + below(4);
  for (std::int64_t i = 0, blocks = 1 + below(6); i < blocks; ++i) {
    if (out.size() + static_cast<std::size_t>(length) * body.size() > 12) break;
    for (std::int64_t k = i == 0 ? 1 : 0; k < length; ++k)
      out = joined(std::move(out), moved(body, i * distance + k * inside));
    length = triangular ? std::max<std::int64_t>(length + change, 0) : below(4);
  }
  if (below(6) == 0) out[static_cast<std::size_t>(below(out.size()))] += 1;
  if (below(2) == 0) out = moved(std::move(out), below(5));
  return out;
}

TEST(TypePath, WithRulesOfRandomSequencesCostsTheLeast) {
#ifdef __SANITIZE_ADDRESS__
  constexpr int kSequences = 500;
#else
  constexpr int kSequences = 5000;
#endif
  std::mt19937 random(8);
  for (int i = 0; i < kSequences; ++i) {
    const auto d = i % 3 == 0 ? random_sequence(random, 12) : random_rule(random);
    expect_right_with_rules(d, i % 2 == 0 ? CostModel{} : random_costs(random));
    if (HasFatalFailure()) return;
  }
}

TEST(TypePath, WithRulesBearsTheLargestDisplacements) {
  constexpr auto kLargest = std::int64_t{1} << 61;
  for (const Displacements& d : {Displacements{-kLargest, kLargest, kLargest, 0, 0, 0},
                                 {-kLargest, 0, kLargest},
                                 {0, 7, kLargest / 3, kLargest}})
    EXPECT_EQ(flatten(*reconstruct_path({d}, kByte, {.bucket = true, .triangular = true}).root), d);
}

Reconstruction tree(const Displacements& d, const TreeOptions& options = {}) {
  return reconstruct_tree({d}, {&kByte, 1}, options);
}

TEST(TypeTree, OfFigure2) {
  const auto found = tree(joined(strided(18, 1), strided(12, 2, 100)));
  EXPECT_EQ(found.cost, 34);
  EXPECT_EQ(to_string(*found.root), "strc(2,<0,100>,<vec(18,1,leaf(1)),vec(12,2,leaf(1))>)");
}

TEST(TypeTree, OfTheSlides) {
  // An index bucket is cheaper than the struct that the slides show.
  const auto d = joined(strided(6, 1), strided(11, 2, 100));
  const auto leaf = std::make_shared<const TreeNode>(kByte);
  const TreeNode members{Strc{{0, 100},
                              {std::make_shared<const TreeNode>(Vec{6, 1, leaf}),
                               std::make_shared<const TreeNode>(Vec{11, 2, leaf})}}};
  EXPECT_EQ(flatten(members), d);
  EXPECT_EQ(cost(members), 34);
  EXPECT_EQ(tree(d).cost, 26);
  Displacements columns;
  for (const auto& [first, width] : {std::pair{10, 2}, std::pair{20, 3}})
    for (std::int64_t i = 0; i < 10; ++i)
      columns = joined(std::move(columns), strided(width, 1, 100 * i + first));
  const auto found = tree(columns);
  EXPECT_EQ(to_string(*found.root),
            "strc(2,<10,20>,<vec(10,100,vec(2,1,leaf(1))),vec(10,100,vec(3,1,leaf(1)))>)");
}

TEST(TypeTree, OfShortSequencesCostsTheLeast) {
  std::mt19937 random(2);
  for (int i = 0; i < 3000; ++i) {
    Displacements d;
    if (i % 3 == 0)
      d = random_sequence(random, 10);
    else
      for (auto n = 1 + random() % 9; n > 0; --n)
        d.push_back(static_cast<std::int64_t>(random() % 4));
    const auto costs = i % 2 == 0 ? CostModel{} : random_costs(random);
    const auto found = tree(d, {.costs = costs});
    ASSERT_EQ(flatten(*found.root), d);
    ASSERT_EQ(cost(*found.root, costs), found.cost);
    ASSERT_EQ(found.cost, BruteForce(costs, {.idxbuc = true, .strc = true})(of_one_kind(d)))
        << testing::PrintToString(d);
  }
}

TEST(TypeTree, OfSeveralKindsCostsTheLeast) {
  constexpr Leaf kLeaves[] = {{1}, {2}};
  std::mt19937 random(5);
  for (int i = 0; i < 3000; ++i) {
    const auto d = random_sequence(random, 9);
    ElementList list;
    std::vector<std::int32_t> kinds;
    const auto period = 1 + random() % 4;
    for (std::size_t k = 0; k < d.size(); ++k) {
      kinds.push_back(k % period == 0 || random() % 16 == 0 ? 1 : 0);
      list.push_back({d[k], kinds.back()});
    }
    expect_right_prefixes(d, kinds);
    const auto costs = i % 2 == 0 ? CostModel{} : random_costs(random);
    const auto found = reconstruct_tree({d, kinds}, kLeaves, {.costs = costs});
    ElementList again;
    for_each_leaf(*found.root, 0, [&](const Leaf& leaf, std::int64_t at) {
      again.push_back({at, leaf.bytes == 2 ? 1 : 0});
    });
    ASSERT_EQ(again, list);
    ASSERT_EQ(found.cost, BruteForce(costs, {.idxbuc = true, .strc = true})(list))
        << testing::PrintToString(d) << testing::PrintToString(kinds);
  }
}

TEST(TypeTree, SharesEqualSubtrees) {
  const auto block = joined(strided(20, 3), strided(18, 2, 100));
  const auto found = tree(joined(joined(block, {1000}), moved(block, 2000)));
  const auto& members = std::get<Strc>(found.root->node).children;
  ASSERT_EQ(members.size(), 4U) << to_string(*found.root);
  EXPECT_EQ(members[1], members[3]);
}

// Sequences too long for an exact search are folded.
TEST(TypeTree, FoldsRuns) {
  EXPECT_EQ(to_string(*tree(joined(strided(180, 1), strided(120, 2, 1000))).root),
            "strc(2,<0,1000>,<vec(180,1,leaf(1)),vec(120,2,leaf(1))>)");
  // The shift costs nothing.
  EXPECT_EQ(to_string(*tree(joined(strided(180, 1, 7), strided(120, 2, 1007))).root),
            "strc(2,<7,1007>,<vec(180,1,leaf(1)),vec(120,2,leaf(1))>)");
}

TEST(TypeTree, FoldsRunsOfRuns) {
  Displacements d;
  for (std::int64_t i = 0; i < 200; ++i) d = joined(std::move(d), strided(5, 1, 10 * i));
  for (std::int64_t i = 0; i < 300; ++i) d = joined(std::move(d), strided(7, 2, 5000 + 20 * i));
  EXPECT_EQ(to_string(*tree(d).root),
            "strc(2,<0,5000>,<vec(200,10,vec(5,1,leaf(1))),vec(300,20,vec(7,2,leaf(1)))>)");
}

TEST(TypeTree, FoldsStretches) {
  // Single elements and a run: folding hardly makes the sequence shorter.
  std::mt19937 random(6);
  Displacements d;
  for (std::int64_t i = 0, at = 0; i < 300; ++i, at += 1 + static_cast<std::int64_t>(random() % 50))
    d.push_back(at);
  d = joined(std::move(d), strided(100, 3, 100000));
  const auto found = tree(d);
  EXPECT_EQ(found.cost, 6 + 2 * 2 + (6 + 300 + 6) + (6 + 6)) << to_string(*found.root);
}

TEST(TypeTree, FoldsPatternsInTheMiddle) {
  // A pattern of twelve irregular displacements, between single elements.
  const Displacements pattern = {0, 5, 7, 12, 20, 21, 30, 36, 37, 45, 50, 52};
  Displacements d = {-1000};
  std::mt19937 random(7);
  std::int64_t at = 0;
  for (int i = 0; i < 100; ++i, at += 60 + static_cast<std::int64_t>(random() % 30))
    d = joined(std::move(d), moved(pattern, at));
  d.push_back(at + 1);
  const auto found = tree(d);
  EXPECT_LE(found.cost, 6 + 3 * 2 + 6 + 6 + (6 + 100) + (6 + 12 + 6)) << to_string(*found.root);
}

TEST(TypePath, KeepsToItsBudget) {
  Displacements d;
  for (std::int64_t i = 0; i < 1000; ++i) d = joined(std::move(d), strided(10, 1, i * i));
  const auto all = repeated_prefixes({d});
  ASSERT_TRUE(all.complete);
  EXPECT_EQ(all.prefixes,
            (std::vector<RepeatedPrefix>{{1, 10}, {2, 10}, {5, 10}, {10, 20}, {10000, 10000}}));
  const auto some = repeated_prefixes({d}, all.comparisons / 2);
  EXPECT_FALSE(some.complete);
  EXPECT_LE(some.comparisons, all.comparisons / 2 + std::ssize(d));
  const auto found = reconstruct_path({d}, kByte, {.budget = all.comparisons / 2});
  EXPECT_FALSE(found.optimal);
  EXPECT_EQ(flatten(*found.root), d);
  EXPECT_GT(found.cost, path(d).cost);
}

TEST(TypeTree, IsNeverDearerThanTheExtendedPath) {
  std::mt19937 random(3);
  for (int i = 0; i < 1000; ++i) {
    auto d = random_sequence(random, 120);
    for (auto more = random() % 3; more > 0; --more)
      d = joined(std::move(d), random_sequence(random, 60));
    const auto extended = path(d, true).cost;
    std::int64_t exact = 0;
    for (const std::int64_t bound : {240, 64, 8, 0}) {
      const auto found = tree(d, {.exact = bound});
      ASSERT_EQ(flatten(*found.root), d);
      ASSERT_EQ(cost(*found.root), found.cost);
      ASSERT_LE(found.cost, extended);
      ASSERT_EQ(found.optimal, std::ssize(d) <= bound);
      if (bound == 240) exact = found.cost;
      ASSERT_GE(found.cost, exact);
    }
  }
}

TEST(TypeTree, KeepsKindsApart) {
  // Structs of a char and a double, and a block of doubles at the end.
  constexpr Leaf kLeaves[] = {{1}, {8}};
  Displacements d;
  std::vector<std::int32_t> kinds;
  for (std::int64_t i = 0; i < 1000; ++i) {
    d = joined(std::move(d), {16 * i, 16 * i + 8});
    kinds.insert(kinds.end(), {0, 1});
  }
  d = joined(std::move(d), strided(500, 8, 20000));
  kinds.insert(kinds.end(), 500, 1);
  const auto found = reconstruct_tree({d, kinds}, kLeaves);
  EXPECT_EQ(to_string(*found.root),
            "strc(2,<0,20000>,<vec(1000,16,strc(2,<0,8>,<leaf(1),leaf(8)>)),vec(500,8,leaf(8))>)");
}

TreeNodePtr leaf() {
  return tree_node(kByte);
}

// Returns nested constructors over one leaf; with `structs`, also structs of several subtrees.
TreeNodePtr random_tree(std::mt19937& random, int depth, bool structs) {
  if (depth == 0) return leaf();
  const auto below = [&](std::uint32_t n) { return static_cast<std::int64_t>(random() % n); };
  const auto child = random_tree(random, depth - 1, structs);
  const auto count = 1 + below(6);
  switch (below(structs ? 4 : 2)) {
    case 0:
      return tree_node(Vec{count, below(3) == 0 ? leaves_of(*child) : below(12) - 3, child});
    case 1: {
      Idx out{{}, child};
      const auto stride = below(9);
      const bool regular = below(2) == 0;
      for (std::int64_t i = 0; i < count; ++i)
        out.displacements.push_back(regular ? i * stride + below(8) / 7 : below(30));
      return tree_node(std::move(out));
    }
    case 2: {
      IdxBuc out{{}, {}, below(8) - 1, child};
      for (std::int64_t i = 0; i < count; ++i) {
        out.blocklengths.push_back(below(4));
        out.displacements.push_back(below(40));
      }
      return tree_node(std::move(out));
    }
    default: {
      Strc out;
      for (std::int64_t i = 0; i < count; ++i) {
        out.displacements.push_back(below(40));
        out.children.push_back(below(2) == 0 ? child : random_tree(random, depth - 1, structs));
      }
      return tree_node(std::move(out));
    }
  }
}

TEST(Normalize, KeepsTheLeavesAndNeverCostsMore) {
  std::mt19937 random(4);
  int optimal = 0, all = 0;
  for (int i = 0; i < 3000; ++i) {
    const bool structs = i % 2 == 0;
    const auto given = random_tree(random, static_cast<int>(1 + random() % 4), structs);
    const auto found = normalize(given);
    const auto d = flatten(*given);
    ASSERT_EQ(flatten(*found.root), d) << to_string(*given);
    ASSERT_EQ(cost(*found.root), found.cost) << to_string(*given);
    ASSERT_LE(found.cost, cost(*given)) << to_string(*given);
    if (structs || d.empty() || d.size() > 2000) continue;
    ++all;
    if (found.cost <= path(d).cost) ++optimal;
  }
  // Nearly all trees of vectors and indices alone become optimal. The remaining ones join levels in
  // other ways.
  EXPECT_GE(optimal, all - all / 1000) << all;
}

TEST(Normalize, JoinsWhatContinues) {
  const auto vec = [](std::int64_t count, std::int64_t stride, TreeNodePtr child) {
    return tree_node(Vec{count, stride, std::move(child)});
  };
  const auto text = [](const TreeNodePtr& tree) { return to_string(*normalize(tree).root); };
  EXPECT_EQ(text(vec(1000, 600, vec(100, 6, vec(6, 1, leaf())))), "vec(600000,1,leaf(1))");
  EXPECT_EQ(text(tree_node(Idx{{7, 8, 9, 10, 11, 12, 13, 14, 15}, leaf()})),
            "idxbuc(1,<9>,<7>,1,leaf(1))");
  EXPECT_EQ(text(vec(100, 10, tree_node(Idx{{5, 8}, leaf()}))), "vec(100,10,idx(2,<5,8>,leaf(1)))");
  EXPECT_EQ(text(tree_node(Idx{{0, 3000, 9000}, vec(3000, 1, leaf())})),
            "idxbuc(2,<6000,3000>,<0,9000>,1,leaf(1))");
  // Members with the same form are one kind.
  EXPECT_EQ(text(tree_node(Strc{{0, 5000, 10000},
                                {vec(900, 2, leaf()), vec(30, 60, vec(30, 2, leaf())),
                                 tree_node(Idx{{0}, vec(900, 2, leaf())})}})),
            "vec(3,5000,vec(900,2,leaf(1)))");
  EXPECT_EQ(text(tree_node(Strc{})), "strc(0,<>,<>)");
}

TEST(Normalize, ComparesEqualMembersOnce) {
  // Copies of one type in a struct are separate nodes.
  const auto member = [] { return tree_node(Idx{{0, 3, 5, 11, 12, 40, 41, 47, 60}, leaf()}); };
  const auto shared = member();
  const auto once = normalize(tree_node(Strc{{0, 99, 300}, {shared, shared, shared}}));
  const auto copies = normalize(tree_node(Strc{{0, 99, 300}, {member(), member(), member()}}));
  EXPECT_EQ(copies.comparisons, once.comparisons);
  EXPECT_EQ(to_string(*copies.root), to_string(*once.root));
}

TreeNodePtr buckets(std::vector<std::int64_t> lengths, std::int64_t size, TreeNodePtr child) {
  std::partial_sum(lengths.begin(), lengths.end(), lengths.begin());
  BucketRule rule{std::ssize(lengths),
                  std::make_shared<const std::vector<std::int64_t>>(std::move(lengths))};
  rule.distance = size;
  return tree_node(RuleBuc{std::move(rule), 1, std::move(child)});
}

TEST(Normalize, KeepsRulesOrFindsBetter) {
  const auto text = [](const TreeNodePtr& tree) { return to_string(*normalize(tree).root); };
  const auto irregular = buckets({1, 2, 5, 3, 1, 4, 2, 6, 1, 3}, 7, leaf());
  EXPECT_EQ(text(irregular), "bucket(10,7,<1,2,5,3,1,4,2,6,1,3>,1,leaf(1))");
  EXPECT_EQ(leaves_of(*buckets({1, 2, 5}, 7, tree_node(Vec{3, 1, leaf()}))), 24);
  // Regular buckets become loops.
  EXPECT_EQ(text(buckets(std::vector<std::int64_t>(100, 2), 7, leaf())),
            "vec(100,7,vec(2,1,leaf(1)))");
  // Buckets that differ only in their lengths are two kinds.
  const auto other = buckets({2, 1, 5, 3, 1, 4, 2, 6, 1, 3}, 7, leaf());
  EXPECT_EQ(flatten(*normalize(tree_node(Strc{{0, 1000}, {irregular, other}})).root),
            joined(flatten(*irregular), moved(flatten(*other), 1000)));
  EXPECT_EQ(text(tree_node(RuleBuc{{std::int64_t{1} << 30, nullptr, 1, 1, 0, 9}, 1, leaf()})),
            "triangular(1073741824,1,1,9,1,leaf(1))");
}

TEST(SignatureType, IsContiguousWhateverTheCounts) {
  const auto text = [](const char* expr) { return to_string(*signature_type(*parse_type(expr))); };
  EXPECT_EQ(text("hvector(1000000000,1,64,vector(4,1,2,double))"),
            "resized(contiguous(4000000000,double),0,32000000000)");
  EXPECT_EQ(text("contiguous(1000000000,resized(struct({1,1},{8,0},{double,int}),0,40))"),
            "resized(hvector(1000000000,1,12,struct({1,1},{0,8},{double,int})),0,12000000000)");
  EXPECT_EQ(text("double"), "double");
}

TEST(SignatureHash, IsOfTheSequenceNotTheConstructors) {
  const auto hash = [](const char* expr) { return signature_hash(*parse_type(expr)); };
  EXPECT_EQ(hash("contiguous(0,int)"), hash("struct({},{},{})"));
  EXPECT_EQ(hash("double_int"), hash("struct({1,1},{8,0},{double,int})"));
  const char* const alike[] = {
      "contiguous(7,struct({1,2},{0,8},{int,double}))",
      "struct({1,1,1,6},{0,40,8,50},{int,contiguous(1,double),double,"
      "struct({1,2},{0,8},{int,double})})",
      "vector(7,1,-3,resized(struct({1,1,1},{0,16,8},{int,double,double}),-8,99))",
      "struct({1,3,3},{0,24,99},{struct({1,2},{0,8},{int,double}),struct({1,2},{0,8},{int,double}),"
      "struct({1,1,1},{0,16,8},{int,double,double})})"};
  for (const auto* expr : alike) EXPECT_EQ(hash(expr), hash(alike[0])) << expr;
  EXPECT_EQ(hash(alike[0]).elements, 21);
  const char* const others[] = {"contiguous(7,struct({1,2},{0,8},{int,int64_t}))",
                                "contiguous(7,struct({2,1},{0,16},{double,int}))",
                                "contiguous(21,int)", "contiguous(21,double)",
                                "contiguous(7,struct({1,2},{0,8},{float,double}))"};
  for (const auto* expr : others) EXPECT_NE(hash(expr), hash(alike[0])) << expr;
  // The counts may be large.
  EXPECT_EQ(hash("contiguous(1000000000,contiguous(1000000,vector(3,2,7,int)))"),
            hash("contiguous(3,contiguous(1000000,contiguous(2000000000,int)))"));
  EXPECT_NE(hash("contiguous(1000000000,int)"), hash("contiguous(999999999,int)"));
}

TEST(Normalize, TakesNoTimeForCounts) {
  // A hash of all elements would not end.
  constexpr auto kMany = std::int64_t{1} << 28;
  const auto tree =
      tree_node(Vec{kMany, 16, tree_node(Idx{{0, 2, 3, 5}, tree_node(Vec{kMany, 1, leaf()})})});
  EXPECT_LE(normalize(tree).cost, cost(*tree));
  EXPECT_EQ(leaves_of(*normalize(tree_node(Vec{kMany, 1, leaf()})).root), kMany);
}

}  // namespace
}  // namespace halocline::dtype::test
