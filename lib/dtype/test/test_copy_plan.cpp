// SPDX-License-Identifier: BSD-3-Clause
// Tests copies from layout to layout with the type maps of both: random pairs, halos between
// arrays, the steps of plans. Nothing else may be written.
//
//   dtype_core [--pairs N] [--seed S]
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "byte_displacements.hpp"
#include "dtype/pack/copy_plan.hpp"
#include "dtype/pack/device/emulated_packer.hpp"
#include "dtype/pack/host/copy_share.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "dtype/type_map.hpp"
#include "flags.hpp"
#include "layout.hpp"
#include "scene.hpp"

namespace halocline::dtype::test {

namespace {

using detail::CopyStep;

// Describes one side of a copy: instances of a type, and the displacement of each packed byte.
struct Side {
  TypeExprPtr expr;
  std::int64_t count;
  std::int64_t offset = 0;  // of the memory, in bytes from an aligned address

  std::vector<std::int64_t> displacements() const {
    return byte_displacements(type_map(*expr), count);
  }
};

// Holds one copy, the bytes that it may touch, and its expected result.
class Pair {
 public:
  Pair(const Side& from, const Side& to, const Noise& noise)
      : text_(std::to_string(from.count) + " x " + to_string(*from.expr) + " at +" +
              std::to_string(from.offset) + " to " + std::to_string(to.count) + " x " +
              to_string(*to.expr) + " at +" + std::to_string(to.offset)),
        before_(noise.complement),
        source_(from.displacements(), from.offset),
        destination_(to.displacements(), to.offset),
        job_{make_plan(*from.expr), source_.buffer(),      from.count,
             make_plan(*to.expr),   destination_.buffer(), to.count} {
    source_.fill(noise.bytes);
    const auto s = from.displacements(), d = to.displacements();
    reset();
    for (std::size_t i = 0; i < d.size(); ++i) destination_.at(d[i]) = source_.at(s[i]);
    after_.assign(destination_.data(), destination_.data() + destination_.length());
  }

  const CopyJob& job() const { return job_; }
  void reset() const { destination_.fill(before_); }
  // Returns the first mistake in the destination, and resets the destination.
  std::string wrong() const {
    const auto difference =
        first_difference(destination_.data(), after_.data(), destination_.length());
    reset();
    return difference.empty() ? "" : difference + " of " + text_;
  }

 private:
  std::string text_;
  const Bytes& before_;
  Memory source_, destination_;
  CopyJob job_;
  Bytes after_;
};

// Returns the number and kind of each step: "3 nests", "5 pieces", ...
std::string steps_of(const CopyPlan& plan) {
  std::string out;
  for (const auto& step : plan.program().steps) {
    const char* const kinds[] = {"nests", "pieces", "windowed"};
    out += (out.empty() ? "" : ", ") + std::to_string(step.last - step.first) + " " +
           kinds[static_cast<std::size_t>(step.kind)];
  }
  return out;
}

void copy_in_shares(const CopyPlan& plan, std::mt19937_64& engine) {
  std::vector<std::int64_t> ends = {0, plan.bytes()};
  for (int i = 0; i < 7; ++i)
    ends.push_back(
        static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(plan.bytes() + 1)));
  std::sort(ends.begin(), ends.end());
  std::vector<std::size_t> order(ends.size() - 1);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), engine);
  for (const auto i : order) host::copy_share(plan, ends[i], ends[i + 1]);
}

// Executes a plan, or both of its halves, by every packer and in shares. check() returns the
// mistakes in the destinations and resets them.
template <class Check>
std::string wrong(const CopyPlan& plan, std::mt19937_64& engine, const Check& check) {
  std::vector<CopyPlan> parts = {plan};
  if (engine() % 2 == 0)
    parts = {plan.half(CopyPlan::Half::second), plan.half(CopyPlan::Half::first)};
  if (engine() % 2 == 0) parts = {CopyPlan::joined(parts)};
  const auto by = [&](const char* name) {
    const std::string bad = check();
    return bad.empty() ? bad : std::string(name) + ": " + bad + " of " + steps_of(plan);
  };
  for (const auto& part : parts) HostPacker().copy(part);
  if (auto bad = by("HostPacker"); !bad.empty()) return bad;
  for (const auto& part : parts) {
    EmulatedPacker().prepare(part);
    EmulatedPacker().copy(part);
  }
  if (auto bad = by("EmulatedPacker"); !bad.empty()) return bad;
  for (const auto& part : parts) copy_in_shares(part, engine);
  return by("copy_share");
}

// Executes the jobs of all pairs as one plan.
std::string wrong(const std::deque<Pair>& pairs, std::mt19937_64& engine) {
  std::vector<CopyJob> jobs;
  for (const auto& pair : pairs) jobs.push_back(pair.job());
  std::shuffle(jobs.begin(), jobs.end(), engine);
  // The plan is made for other addresses.
  constexpr detail::Address kAway = 3 << 20;
  for (auto& job : jobs) {
    job.source = static_cast<const std::byte*>(job.source) + kAway;
    job.destination = static_cast<std::byte*>(job.destination) + kAway;
  }
  const auto plan = CopyPlan(jobs).moved([](detail::Address address) { return address - kAway; });
  return wrong(plan, engine, [&] {
    for (const auto& pair : pairs)
      if (auto bad = pair.wrong(); !bad.empty()) return bad;
    return std::string();
  });
}

bool overlaps(const Side& side) {
  const auto all = side.displacements();
  return std::set<std::int64_t>(all.begin(), all.end()).size() != all.size();
}

// Draws pairs of random types with the same number of bytes, and pairs with a plain vector or a
// list.
class PairGenerator {
 public:
  explicit PairGenerator(std::uint64_t seed) : calls_(seed), engine_(seed) {}

  std::pair<Side, Side> next() {
    while (true) {
      auto from = side(), to = one_in(3) ? partner(from) : side();
      if (one_in(2)) std::swap(from, to);
      const auto a = type_map(*from.expr).size, b = type_map(*to.expr).size;
      if (a == 0 || b == 0) continue;
      const auto bytes = std::lcm(a, b) * (one_in(4) ? 3 : 1);
      from.count = bytes / a, to.count = bytes / b;
      if (bytes > kMaxBytes || spans_much(from) || spans_much(to) || overlaps(to)) continue;
      return {from, to};
    }
  }

 private:
  static constexpr std::int64_t kMaxBytes = 1 << 14;

  bool one_in(std::uint64_t n) { return engine_() % n == 0; }
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(n));
  }
  Side side() {
    const auto call = calls_.next();
    return {call.expr, call.count, call.memory_offset};
  }
  Side partner(const Side& other) {
    const auto size = std::max<std::int64_t>(type_map(*other.expr).size, 1);
    std::vector<std::int64_t> divisors;
    for (std::int64_t n = 1; n <= std::min<std::int64_t>(size, 300); ++n)
      if (size % n == 0) divisors.push_back(n);
    const auto run = divisors[static_cast<std::size_t>(below(std::ssize(divisors)))];
    const auto text = std::to_string(run) + "," + std::to_string(run + below(50)) + ",byte";
    return {parse_type((one_in(2) ? "hvector(" : "vector(") + std::to_string(size / run) + "," +
                       text + ")"),
            1, below(17)};
  }
  static bool spans_much(const Side& side) {
    const auto map = type_map(*side.expr);
    return std::abs(map.extent) * side.count + map.true_extent > CallGenerator::kMaxSpan;
  }

  CallGenerator calls_;
  std::mt19937_64 engine_;
};

const Noise& noise() {
  static const Noise the_noise(3);
  return the_noise;
}

CopyPlan plan_of_pair(const char* from, std::int64_t from_count, const char* to,
                      std::int64_t to_count) {
  // Both addresses are far apart and never used.
  auto* const source = reinterpret_cast<void*>(std::uintptr_t{1} << 40);
  auto* const destination = reinterpret_cast<void*>(std::uintptr_t{1} << 44);
  return CopyPlan({{plan_of(from), source, from_count, plan_of(to), destination, to_count}});
}

// Describes an array of doubles.
struct Array {
  std::array<std::int64_t, 3> sides;  // z, y, x
  Order order = Order::c;

  std::int64_t bytes() const { return sides[0] * sides[1] * sides[2] * 8; }
  TypeExprPtr region(const std::array<std::int64_t, 3>& extent,
                     const std::array<std::int64_t, 3>& start) const {
    Subarray box{order,
                 {sides[0], sides[1], sides[2]},
                 {extent[0], extent[1], extent[2]},
                 {start[0], start[1], start[2]},
                 named("double")};
    if (order == Order::fortran)
      for (auto* list : {&box.sizes, &box.subsizes, &box.starts})
        std::reverse(list->begin(), list->end());
    return type(std::move(box));
  }
};

}  // namespace

TEST(CopyPlan, RandomPairsAreCopiedByTheirTypeMaps) {
  const auto trials = halocline::test::read_trials("--pairs", 5000, 1000);
  std::printf("seed %llu, %lld pairs\n", static_cast<unsigned long long>(trials.seed),
              static_cast<long long>(trials.count));
  PairGenerator generator(trials.seed);
  std::mt19937_64 engine(trials.seed);
  std::array<std::int64_t, 3> kinds{};
  for (std::int64_t i = 0; i < trials.count;) {
    std::deque<Pair> pairs;
    for (auto n = 1 + engine() % 6; n > 0; --n, ++i) {
      const auto [from, to] = generator.next();
      pairs.emplace_back(from, to, noise());
      const CopyPlan alone({pairs.back().job()});
      for (const auto& step : alone.program().steps) ++kinds[static_cast<std::size_t>(step.kind)];
    }
    const auto bad = wrong(pairs, engine);
    ASSERT_EQ(bad, "") << "pair " << i << " of seed " << trials.seed;
  }
  for (const auto n : kinds) EXPECT_GT(n, trials.count / 50) << "the test sees too little";
}

TEST(CopyPlan, SizesMustAgree) {
  try {
    plan_of_pair("vector(3,2,4,double)", 2, "contiguous(11,double)", 1);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "copy job 0 has 96 bytes at its source and 88 at its destination (instances times "
                 "the size of the type): give both the same signature");
  }
}

TEST(CopyPlan, NothingIsNothing) {
  EXPECT_EQ(CopyPlan().bytes(), 0);
  const auto plan = plan_of_pair("vector(3,2,4,double)", 0, "contiguous(0,double)", 7);
  EXPECT_EQ(plan.bytes(), 0);
  EXPECT_EQ(steps_of(plan), "");
  HostPacker().copy(plan);
  EmulatedPacker().copy(plan);
}

TEST(CopyPlan, HalvesAreAboutEqual) {
  const auto halves_of = [](const char* from, const char* to) {
    const auto plan = plan_of_pair(from, 1, to, 1);
    const auto first = plan.half(CopyPlan::Half::first), second = plan.half(CopyPlan::Half::second);
    EXPECT_EQ(first.bytes() + second.bytes(), plan.bytes());
    return std::pair(first.bytes(), second.bytes());
  };
  using Halves = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(halves_of("vector(100,3,7,double)", "vector(100,3,5,double)"), Halves(1200, 1200));
  EXPECT_EQ(halves_of("vector(5,3,7,double)", "vector(5,3,5,double)"), Halves(72, 48));
  EXPECT_EQ(halves_of("subarray(C,{9,80,7},{3,70,3},{0,0,0},double)",
                      "subarray(C,{9,80,7},{3,70,3},{3,3,3},double)"),
            Halves(2520, 2520))
      << "the longest loop is cut";
  EXPECT_EQ(halves_of("contiguous(1000,byte)", "contiguous(1000,byte)"), Halves(448, 552))
      << "the cut is where a cache line begins";
  const CopyPlan none;
  EXPECT_EQ(none.half(CopyPlan::Half::first).bytes(), 0);
  EXPECT_EQ(none.half(CopyPlan::Half::second).bytes(), 0);
}

TEST(CopyPlan, StridedPairsAreOneNest) {
  const auto steps = [](auto... pair) { return steps_of(plan_of_pair(pair...)); };
  EXPECT_EQ(steps("contiguous(100,double)", 3, "contiguous(50,double)", 6), "1 pieces");
  EXPECT_EQ(steps("vector(100,3,7,double)", 1, "vector(100,3,5,double)", 1), "1 nests");
  EXPECT_EQ(steps("vector(100,6,7,double)", 1, "vector(300,2,5,double)", 1), "1 nests");
  EXPECT_EQ(steps("subarray(C,{9,8,7},{5,4,3},{1,2,3},double)", 1,
                  "subarray(C,{20,30,40},{5,4,3},{9,9,9},double)", 1),
            "1 nests");
  // Rows here and a box there; rows that go backwards.
  EXPECT_EQ(steps("vector(4,3,9,double)", 5, "subarray(C,{9,8,7},{5,4,3},{1,2,3},double)", 1),
            "1 nests");
  EXPECT_EQ(steps("hvector(5,3,-100,double)", 1, "vector(5,3,9,double)", 1), "1 nests");
  EXPECT_EQ(steps("vector(100,1,-1,double)", 1, "vector(100,1,-1,double)", 1), "1 pieces")
      << "backwards on both sides";
}

TEST(CopyPlan, RunsThatDoNotDivideEachOtherShareALoopOverBoth) {
  // Runs of 24 and 40 bytes fit together after 120 bytes, in 7 pieces.
  const auto plan = plan_of_pair("vector(500,3,4,double)", 1, "vector(300,5,7,double)", 1);
  EXPECT_EQ(steps_of(plan), "7 nests");
  for (const auto& nest : plan.program().nests)
    EXPECT_EQ(nest.levels, (std::vector<LoopLevel>{{100, 160, 168}}));
}

TEST(CopyPlan, StructsShareTheLoopOverTheirInstances) {
  EXPECT_EQ(steps_of(plan_of_pair("struct({1,1,3},{0,8,24},{char,double,int})", 1000,
                                  "struct({1,1,3},{0,1,9},{char,double,int})", 1000)),
            "3 nests");
  // The destination has one array for each member.
  EXPECT_EQ(steps_of(plan_of_pair("struct({1,1},{0,8},{double,int})", 1000,
                                  "resized(struct({1,1},{0,8000},{double,int}),0,8)", 1000)),
            "2 nests");
}

TEST(CopyPlan, ListsAreShortOrWindowed) {
  EXPECT_EQ(steps_of(plan_of_pair("indexed_block(2,{0,5,7,9,20,33,50},double)", 1,
                                  "contiguous(14,double)", 1)),
            "5 pieces");
  EXPECT_EQ(steps_of(plan_of_pair("indexed_block(2,{0,5,7,9,20,33,50},double)", 1000,
                                  "vector(14000,1,2,double)", 1)),
            "14 nests");
  std::string displacements = "0";
  for (int i = 1; i < 500; ++i) displacements += "," + std::to_string(3 * i + i * i % 7);
  const auto text = "indexed_block(1,{" + displacements + "},double)";
  const auto plan = plan_of_pair(text.c_str(), 1, "vector(500,1,2,double)", 1);
  EXPECT_EQ(steps_of(plan), "1 windowed");
  EXPECT_TRUE(plan.program().pieces.empty());
}

// Takes flat arrays with many rows and cubes, so that nests are cut at either level.
TEST(CopyPlan, HalosAreCopiedBetweenArraysOfAnyShape) {
  constexpr std::int64_t kRadius = 3;
  std::mt19937_64 engine(7);
  const Array flat{{11, 306, 30}}, larger{{12, 307, 33}}, turned{{13, 306, 31}, Order::fortran};
  const Array cube{{49, 49, 49}};
  std::set<int> cut;
  for (const auto& [from, to] :
       {std::pair(flat, flat), std::pair(flat, larger), std::pair(larger, turned),
        std::pair(turned, flat), std::pair(cube, cube)}) {
    const auto random_bytes = [&](std::int64_t length) {
      Bytes out(static_cast<std::size_t>(length));
      for (auto& byte : out) byte = static_cast<unsigned char>(engine());
      return out;
    };
    Bytes source = random_bytes(from.bytes());
    const Bytes before = random_bytes(to.bytes());
    Bytes destination = before, expected = before;
    std::vector<CopyJob> jobs;
    for (int d = 0; d < 27; ++d) {
      if (d == 13) continue;
      std::array<std::int64_t, 3> extent{}, start{}, ghost{};
      const int steps[] = {d / 9 - 1, d / 3 % 3 - 1, d % 3 - 1};
      for (std::size_t k = 0; k < 3; ++k) {
        const auto points = std::min(from.sides[k], to.sides[k]) - 2 * kRadius;
        extent[k] = steps[k] == 0 ? points : kRadius;
        start[k] = steps[k] < 0 ? points : kRadius;
        ghost[k] = steps[k] < 0 ? 0 : steps[k] > 0 ? points + kRadius : kRadius;
      }
      const Side sent{from.region(extent, start), 1}, received{to.region(extent, ghost), 1};
      const auto s = sent.displacements(), r = received.displacements();
      for (std::size_t i = 0; i < s.size(); ++i)
        expected[static_cast<std::size_t>(r[i])] = source[static_cast<std::size_t>(s[i])];
      jobs.push_back({make_plan(*sent.expr), source.data(), 1, make_plan(*received.expr),
                      destination.data(), 1});
    }
    const CopyPlan plan(jobs);
    for (const auto& step : host::units_of(plan))
      if (step.units > 1) cut.insert(step.height);
    EXPECT_EQ(wrong(plan, engine,
                    [&] {
                      const auto bad =
                          first_difference(destination.data(), expected.data(), to.bytes());
                      destination = before;
                      return bad;
                    }),
              "");
  }
  EXPECT_EQ(cut, (std::set<int>{0, 1})) << "the test sees too little";
}

// Long rows of a plan that exceeds the caches are stored past them. All begins and ends of rows are
// at odd places.
TEST(CopyPlan, LongRowsOfLargePlansAreCopied) {
  constexpr std::int64_t kRows = 1000, kFrom = 7001, kTo = 6007;
  for (const std::int64_t run : {4096, 4097, 5999}) {
    const auto rows = [&](std::int64_t stride) {
      return plan_of(("hvector(" + std::to_string(kRows) + "," + std::to_string(run) + "," +
                      std::to_string(stride) + ",byte)")
                         .c_str());
    };
    constexpr std::int64_t kPiece = 1000003;
    Bytes source(kRows * kFrom + kPiece), expected(kRows * kTo + kPiece);
    std::mt19937_64 engine(static_cast<std::uint64_t>(run));
    for (auto& byte : source) byte = static_cast<unsigned char>(engine());
    for (auto& byte : expected) byte = static_cast<unsigned char>(engine());
    const auto before = expected;
    auto destination = before;
    const auto piece = plan_of("contiguous(1000003,byte)");
    auto* const end = destination.data() + kRows * kTo;
    const CopyPlan plan({{rows(kFrom), source.data(), 1, rows(kTo), destination.data(), 1},
                         {piece, source.data() + kRows * kFrom, 1, piece, end, 1}});
    ASSERT_GE(plan.half(CopyPlan::Half::first).bytes(), 2 << 20);
    for (std::int64_t row = 0; row < kRows; ++row)
      std::copy_n(source.data() + row * kFrom, run, expected.data() + row * kTo);
    std::copy_n(source.data() + kRows * kFrom, kPiece, expected.data() + kRows * kTo);
    EXPECT_EQ(wrong(plan, engine,
                    [&] {
                      const auto bad = first_difference(destination.data(), expected.data(),
                                                        std::ssize(expected));
                      destination = before;
                      return bad;
                    }),
              "")
        << run;
  }
}

// Ghosts of one row and of the next row are written together, also from different jobs.
TEST(CopyPlan, JobsThatWriteToTheSameRowsTakeTurns) {
  const Array array{{38, 38, 38}};
  std::vector<CopyJob> jobs;
  Bytes source(38 * 38 * 38 * 8), destination(source.size());
  const auto add = [&](std::array<std::int64_t, 3> extent, std::array<std::int64_t, 3> start,
                       std::array<std::int64_t, 3> ghost) {
    jobs.push_back({make_plan(*array.region(extent, start)), source.data(), 1,
                    make_plan(*array.region(extent, ghost)), destination.data(), 1});
  };
  add({32, 32, 3}, {3, 3, 3}, {3, 3, 35});
  add({32, 3, 32}, {3, 32, 3}, {3, 0, 3});
  add({32, 32, 3}, {3, 3, 32}, {3, 3, 0});
  EXPECT_EQ(steps_of(CopyPlan(jobs)), "1 nests, 2 nests");
}

// Two arrays beside each other in x, with one or with both of their faces in common: the ghosts of
// one array and the points that it sends are in the same rows.
TEST(CopyPlan, JobsThatCopyBothWaysBetweenTheSameRowsTakeTurns) {
  const Array left{{38, 38, 38}}, right{{38, 38, 20}};
  Bytes a(38 * 38 * 38 * 8), b(38 * 38 * 20 * 8);
  const auto face = [](const Array& array, std::int64_t x) {
    return make_plan(*array.region({32, 32, 3}, {3, 3, x}));
  };
  std::vector<CopyJob> jobs = {{face(left, 32), a.data(), 1, face(right, 0), b.data(), 1},
                               {face(right, 3), b.data(), 1, face(left, 35), a.data(), 1}};
  EXPECT_EQ(steps_of(CopyPlan(jobs)), "2 nests");
  jobs.push_back({face(left, 3), a.data(), 1, face(right, 17), b.data(), 1});
  jobs.push_back({face(right, 14), b.data(), 1, face(left, 0), a.data(), 1});
  EXPECT_EQ(steps_of(CopyPlan(jobs)), "4 nests");
  EXPECT_EQ(steps_of(CopyPlan(jobs).half(CopyPlan::Half::second)), "4 nests");
}

// Ghost planes come from the same planes of another array: regions that adjoin on both sides are
// merged.
TEST(CopyPlan, JobsThatContinueEachOtherAreJoined) {
  const Array array{{10, 10, 10}};
  std::vector<CopyJob> jobs;
  Bytes source(10 * 10 * 10 * 8), destination(source.size());
  for (const std::int64_t y : {2, 0, 8})
    for (const std::int64_t x : {8, 0, 2}) {
      const auto plan = make_plan(*array.region({2, y == 2 ? 6 : 2, x == 2 ? 6 : 2}, {4, y, x}));
      jobs.push_back({plan, source.data(), 1, plan, destination.data(), 1});
    }
  const CopyPlan plan(jobs);
  EXPECT_EQ(steps_of(plan), "1 pieces");
  EXPECT_EQ(plan.bytes(), 2 * 10 * 10 * 8);
}

// One job begins where the loop of the other job would go on, but has other strides at its source.
TEST(CopyPlan, JobsThatDoNotContinueEachOtherAreNotJoined) {
  const auto rows = plan_of("vector(40,1,2,double)"), wide = plan_of("vector(40,1,3,double)");
  Bytes source(noise().bytes.begin(), noise().bytes.begin() + 4000), destination(4000, 0);
  const CopyPlan plan({{rows, source.data(), 1, rows, destination.data(), 1},
                       {wide, source.data() + 640, 1, rows, destination.data() + 640, 1}});
  HostPacker().copy(plan);
  Bytes expected(4000, 0);
  for (std::size_t i = 0; i < 80; ++i)
    std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(i < 40 ? 16 * i : 640 + 24 * (i - 40)),
                8, expected.begin() + static_cast<std::ptrdiff_t>(16 * i));
  EXPECT_TRUE(destination == expected) << steps_of(plan);
}

}  // namespace halocline::dtype::test
