// SPDX-License-Identifier: BSD-3-Clause
// Tests properties of every datatype on random ones. All packers follow the type map, unpacking
// leaves gaps alone, and equal layouts have equal nests. MPI_Pack is asked as well.
//
//   dtype_random_types [--types N] [--seed S] [--vendor-bugs DIR]
#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "byte_displacements.hpp"
#include "dtype/datatype.hpp"
#include "dtype/pack/block_list.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "dtype/pack/host/segment.hpp"
#include "dtype/pack/kokkos/kokkos_packer.hpp"
#include "dtype/pack/range_plan.hpp"
#include "dtype/reconstruct/normalize.hpp"
#include "dtype/reconstruct/signature.hpp"
#include "dtype/reconstruct/typed_sequence.hpp"
#include "dtype/type_map.hpp"
#include "dtype/type_tree.hpp"
#include "emulated.hpp"
#include "flags.hpp"
#include "random_call.hpp"
#include "scene.hpp"
#include "support/mpi_check.hpp"
#include "tree_walk.hpp"
#include "vendor_pack.hpp"

namespace halocline::dtype::test {

namespace {

struct Options {
#ifdef __SANITIZE_ADDRESS__
  std::int64_t types = 10000;  // sanitizers unwind the stack at every allocation, which is slow
#else
  std::int64_t types = 60000;
#endif
  std::uint64_t seed = halocline::test::seed_of_today();
  std::string vendor_bugs;  // directory; empty: no reports
};

Options read_options() {
  Options options;
  halocline::test::read_flags([&](std::string_view flag, std::string_view value) {
    if (flag == "--types")
      options.types = halocline::test::number<std::int64_t>(flag, value);
    else if (flag == "--seed")
      options.seed = halocline::test::number<std::uint64_t>(flag, value);
    else if (flag == "--vendor-bugs")
      options.vendor_bugs = value;
    else
      return false;
    return true;
  });
  return options;
}

std::optional<std::string> wrong_invariant(const LoopNest& nest) {
  std::int64_t packed = nest.run;
  auto by_packed_stride = nest.levels;
  std::sort(by_packed_stride.begin(), by_packed_stride.end(),
            [](const auto& a, const auto& b) { return a.packed_stride < b.packed_stride; });
  for (const auto& level : by_packed_stride) {
    if (level.count < 2) return "a level of count " + std::to_string(level.count);
    if (level.packed_stride != packed) return "the packed bytes are not covered exactly once";
    packed *= level.count;
  }
  if (packed != nest.bounds.size) return "runs and run do not make the size";
  if (!std::is_sorted(nest.levels.begin(), nest.levels.end(), [](const auto& a, const auto& b) {
        return std::abs(a.stride) < std::abs(b.stride);
      }))
    return "levels are not in ascending order of |stride|";
  return std::nullopt;
}

// Packs and unpacks through a Segment in pieces of random sizes and order. Checks blocks() and
// measure() for each piece.
class SegmentPacker {
 public:
  explicit SegmentPacker(std::uint64_t seed) : engine_(seed) {}

  void pack(const PackPlan& plan, const void* buffer, std::int64_t count, unsigned char* packed) {
    Segment segment(plan, buffer, count, lookahead());
    for (const auto& [first, last] : pieces(segment.bytes())) {
      segment.seek(first);
      segment.pack(packed + first, last - first);
    }
  }
  void unpack(const PackPlan& plan, const unsigned char* packed, void* buffer, std::int64_t count) {
    Segment segment(plan, buffer, count, lookahead());
    for (const auto& [first, last] : pieces(segment.bytes())) {
      segment.seek(first);
      segment.unpack(packed + first, last - first);
    }
  }
  void fence() const {}

  // Compares list_blocks() with the displacement of each packed byte; returns the first mistake.
  std::optional<std::string> wrong_blocks(const PackPlan& plan, std::int64_t count,
                                          const std::vector<std::int64_t>& displacements) {
    const auto bytes = plan.packed_bytes(count);
    const auto first = between(0, bytes);
    std::int64_t at = first, position = first, blocks = 0;
    std::vector<MemoryBlock> list(static_cast<std::size_t>(between(1, 7)));
    while (const auto n = list_blocks(plan, count, position, list)) {
      blocks += static_cast<std::int64_t>(n);
      for (std::size_t i = 0; i < n; ++i)
        for (std::int64_t b = 0; b < list[i].length; ++b, ++at)
          if (at >= std::ssize(displacements) ||
              displacements[static_cast<std::size_t>(at)] != list[i].offset + b)
            return "list_blocks() is wrong at packed byte " + std::to_string(at);
      if (position != at) return "list_blocks() stands at a wrong position";
    }
    if (position != bytes) return "list_blocks() ends early";
    std::int64_t fewest = 0;
    for (auto b = static_cast<std::size_t>(first); b < displacements.size(); ++b)
      if (static_cast<std::int64_t>(b) == first || displacements[b] != displacements[b - 1] + 1)
        ++fewest;
    if (blocks != fewest)
      return "list_blocks() writes " + std::to_string(blocks) + " blocks where " +
             std::to_string(fewest) + " would do";
    const auto counted = count_blocks(plan, count, first, bytes);
    if (counted != blocks)
      return "count_blocks() says " + std::to_string(counted) + " blocks, not " +
             std::to_string(blocks);
    return std::nullopt;
  }

 private:
  using Range = std::pair<std::int64_t, std::int64_t>;

  std::vector<Range> pieces(std::int64_t bytes) {
    std::vector<Range> out;
    const auto longest = between(0, 1) == 0 ? 9 : std::max<std::int64_t>(bytes / 3, 1);
    for (std::int64_t first = 0; first < bytes;) {
      const auto last = std::min(first + between(1, std::max(longest, bytes / 500)), bytes);
      out.push_back({first, last});
      first = last;
    }
    if (between(0, 1) == 0) std::shuffle(out.begin(), out.end(), engine_);
    return out;
  }
  std::int64_t lookahead() { return between(0, 2) == 0 ? 0 : between(1, 4096); }
  std::int64_t between(std::int64_t first, std::int64_t last) {
    return first +
           static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(last - first + 1));
  }

  std::mt19937_64 engine_;
};

// Packs and unpacks through three range_plan()s, or at once if the type has none.
class RangePacker {
 public:
  explicit RangePacker(std::uint64_t seed) : engine_(seed) {}

  void pack(const PackPlan& plan, const void* buffer, std::int64_t count, unsigned char* packed) {
    for_each_part(plan, const_cast<void*>(buffer), count,
                  [&](const FusedPlan& part, std::int64_t at) { packer_.pack(part, packed + at); });
  }
  void unpack(const PackPlan& plan, const unsigned char* packed, void* buffer, std::int64_t count) {
    for_each_part(plan, buffer, count, [&](const FusedPlan& part, std::int64_t at) {
      packer_.unpack(part, packed + at);
    });
  }
  void fence() const {}

 private:
  template <class Body>
  void for_each_part(const PackPlan& plan, void* buffer, std::int64_t count, Body body) {
    const auto bytes = plan.packed_bytes(count);
    const auto place = [&] {
      return has_range_plans(plan, count)
                 ? static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(bytes + 1))
                 : 0;
    };
    auto a = place(), b = place();
    if (a > b) std::swap(a, b);
    const std::array ends{std::int64_t{0}, a, b, bytes};
    for (std::size_t i = 0; i < 3; ++i)
      body(range_plan(plan, buffer, count, ends[i], ends[i + 1]).value(), ends[i]);
  }

  std::mt19937_64 engine_;
  EmulatedPacker packer_;
};

// Judges our treatment of one call after the other.
class Judge {
 public:
  explicit Judge(std::uint64_t seed) : noise_(seed) {}

  // Returns the first mistake; nothing if there is none.
  std::optional<std::string> wrong(const Call& call) {
    const auto map = type_map(*call.expr);
    const auto in_mpi = lowered(call.expr);
    if (in_mpi != call.expr &&
        byte_displacements(type_map(*in_mpi), call.count) != byte_displacements(map, call.count))
      return "lowered to " + to_string(*in_mpi);
    if (auto bad = wrong_by_handle({in_mpi, call.count, call.memory_offset, call.packed_offset}))
      return bad;

    const auto tree = translate(*call.expr);
    const TypeBounds expected{map.size, map.lb, map.extent, map.true_lb, map.true_extent};
    if (tree.bounds != expected) return "bounds differ from the type map's";
    const auto displacements = byte_displacements(map, call.count);
    if (byte_displacements(tree, call.count) != displacements)
      return "the tree " + to_string(*tree.root) + " does not expand to the type map";

    const auto form = canonicalize(tree);
    if (const auto nest = form.nest())
      if (auto broken = wrong_invariant(*nest)) return *broken + " in " + to_string(*nest);
    const PackPlan plan(form);
    if (plan.packed_bytes(call.count) != map.size * call.count) return "packed_bytes is wrong";

    const Scene scene(call, displacements, noise_);
    if (auto bad = scene.wrong(HostPacker(), "HostPacker", plan, call)) return bad;
    if (auto bad = scene.wrong_order(HostPacker(), "HostPacker", plan, call)) return bad;
    if (auto bad = scene.wrong(openmp_, "KokkosPacker<OpenMP>", plan, call)) return bad;
    if (auto bad = scene.wrong(EmulatedPacker(), "EmulatedPacker", plan, call)) return bad;
    if (auto bad = scene.wrong(WideEmulation(), "EmulatedPacker (64-bit)", plan, call)) return bad;
    if (auto bad = scene.wrong(FusedEmulation(calls_ % 2 == 0 ? 4032 : 100),
                               "EmulatedPacker (fused)", plan, call))
      return bad;
    if (calls_ % 4 == 0)
      if (auto bad = scene.wrong(RangePacker(calls_), "range_plan", plan, call)) return bad;
    SegmentPacker segments(calls_++);
    if (auto bad = scene.wrong(segments, "Segment", plan, call)) return bad;
    return segments.wrong_blocks(plan, call.count, displacements);
  }

 private:
  // Returns a mistake of the plan of an MPI datatype, whose instances lie as MPI_Type_get_extent
  // says.
  std::optional<std::string> wrong_by_handle(const Call& call) {
    const auto handle = make_datatype(*call.expr);
    const auto expected = with_mpi_bounds(call.expr);
    const auto decoded = decode(handle.get());
    const auto planned = make_plan(handle.get());
    if (const auto* reason = std::get_if<UnsupportedDatatype>(&decoded)) {
      if (expected != nullptr) return reason->what();
      if (std::holds_alternative<PackPlan>(planned)) return "planned, but not decoded";
      return std::nullopt;
    }
    const auto text = to_string(*std::get<TypeExprPtr>(decoded));
    if (expected == nullptr || text != to_string(*expected)) return "decoded as " + text;
    if (expected == call.expr) return std::nullopt;
    const auto displacements = byte_displacements(type_map(*expected), call.count);
    if (displacements.empty()) return std::nullopt;
    const auto [least, greatest] = std::minmax_element(displacements.begin(), displacements.end());
    if (*greatest - *least >= CallGenerator::kMaxSpan)
      return std::nullopt;  // MPI's bounds are far from ours
    const Scene scene(call, displacements, noise_);
    const auto& plan = std::get<PackPlan>(planned);
    if (auto bad = scene.wrong(HostPacker(), "HostPacker by MPI's bounds", plan, call)) return bad;
    return scene.wrong_order(HostPacker(), "HostPacker by MPI's bounds", plan, call);
  }

  Noise noise_;
  // Shares have a few bytes, so that they begin and end anywhere.
  KokkosPacker<Kokkos::OpenMP> openmp_{Kokkos::OpenMP(), 24};
  std::uint64_t calls_ = 0;
};

class RandomTypes : public testing::Test {
 protected:
  void SetUp() override {
    std::printf("seed %llu, %lld types\n", static_cast<unsigned long long>(options_.seed),
                static_cast<long long>(options_.types));
  }

  const Options options_ = read_options();
  CallGenerator calls_{options_.seed};
};

}  // namespace

TEST_F(RandomTypes, ArePackedAndUnpackedByTheTypeMap) {
  Judge judge(options_.seed);
  for (std::int64_t i = 0; i < options_.types; ++i) {
    const auto call = calls_.next();
    const auto wrong = judge.wrong(call);
    if (!wrong) continue;
    const auto smallest = shrink(call, [&](const Call& c) { return judge.wrong(c).has_value(); });
    FAIL() << "type " << i << " of seed " << options_.seed << ": " << describe(call) << "\n"
           << *wrong << "\nsmallest call that fails: " << describe(smallest) << "\n"
           << *judge.wrong(smallest);
  }
}

TEST_F(RandomTypes, WithEqualLayoutsHaveEqualNests) {
  struct First {
    LoopNest nest;
    std::string expr;
  };
  std::unordered_map<std::string, First> by_layout;
  std::int64_t compared = 0;
  for (std::int64_t i = 0; i < options_.types; ++i) {
    const auto expr = calls_.next().expr;
    const auto map = type_map(*expr);
    constexpr std::int64_t kMaxBytes = 64;
    if (map.size > kMaxBytes) continue;
    auto layout = byte_displacements(map, 1);
    layout.insert(layout.end(), {map.lb, map.extent});
    const std::string key(reinterpret_cast<const char*>(layout.data()),
                          layout.size() * sizeof(layout[0]));
    const auto nest = canonicalize(translate(*expr)).nest();
    if (!nest) continue;
    const auto [at, inserted] = by_layout.try_emplace(key, First{*nest, to_string(*expr)});
    if (inserted || at->second.expr == to_string(*expr)) continue;
    ++compared;
    ASSERT_EQ(*nest, at->second.nest) << "seed " << options_.seed << ": " << to_string(*expr)
                                      << " has " << to_string(*nest) << "\n"
                                      << at->second.expr << " has " << to_string(at->second.nest);
  }
  EXPECT_GT(compared, options_.types / 20) << "too few types of one layout: the test sees nothing";
}

// Expects that a tree has the type map `map` after it became an MPI datatype.
void expect_same_type(const TreeNodePtr& tree, const TypeExpr& expr, const TypeMap& map) {
  SCOPED_TRACE(to_string(expr) + "\n" + to_string(*tree));
  const auto again = to_type_expr({tree, type_bounds(expr)});
  const auto map_again = type_map(*again);
  ASSERT_EQ(map_again.entries.size(), map.entries.size());
  for (std::size_t i = 0; i < map.entries.size(); ++i) {
    ASSERT_EQ(map_again.entries[i].displacement, map.entries[i].displacement);
    ASSERT_EQ(map_again.entries[i].type->name, map.entries[i].type->name);
  }
  const auto handle = make_datatype(*again);
  int size = 0;
  HALOCLINE_MPI(MPI_Type_size(handle.get(), &size));
  MPI_Aint lb = 0, extent = 0;
  HALOCLINE_MPI(MPI_Type_get_extent(handle.get(), &lb, &extent));
  ASSERT_EQ(size, map.size);
  ASSERT_EQ(lb, map.lb);
  ASSERT_EQ(extent, map.extent);
}

// Expects that `signature` is the basic types of `map`, one behind the other.
void expect_signature(const TypeExpr& signature, const TypeMap& map) {
  SCOPED_TRACE(to_string(signature));
  const auto packed = type_map(signature);
  ASSERT_EQ(packed.entries.size(), map.entries.size());
  std::int64_t end = 0;
  for (std::size_t i = 0; i < map.entries.size(); ++i) {
    ASSERT_EQ(packed.entries[i].displacement, end);
    ASSERT_EQ(packed.entries[i].type->name, map.entries[i].type->name);
    end += map.entries[i].type->size;
  }
  ASSERT_EQ(packed.lb, 0);
  ASSERT_EQ(packed.extent, end);
}

TEST_F(RandomTypes, AreReconstructedAndNormalizedAsTheyAre) {
  for (std::int64_t i = 0; i < options_.types / 20; ++i) {
    const auto expr = calls_.next().expr;
    const auto map = type_map(*expr);
    if (map.entries.empty()) continue;
    const auto sequence = typed_sequence(map);
    expect_same_type(reconstruct_tree(sequence.view(), sequence.leaves).root, *expr, map);
    const auto tree = translate(*expr).root;
    const auto normal = normalize(tree);
    expect_same_type(normal.root, *expr, map);
    const auto signature = signature_type(*expr);
    expect_signature(*signature, map);
    ASSERT_EQ(signature_hash(*signature), signature_hash(*expr)) << to_string(*expr);
    ASSERT_EQ(normal.cost, cost(*normal.root));
    ASSERT_LE(normal.cost, cost(*tree)) << to_string(*expr);
    if (HasFatalFailure()) FAIL() << "type " << i << " of seed " << options_.seed;
  }
}

// A bucket's stride is the extent of its elements. MPIs compute this extent differently if a
// repetition breaks an alignment (bounds-other in results/vendor-bugs): 40 bytes here, 44 in MPIs.
TEST(BucketsOfPaddedTypes, AreThemselvesToTheVendor) {
  const auto expr = parse_type(
      "hindexed({2,1},{0,120},hvector(2,1,20,struct({1,1},{0,4},{int,hvector(2,1,8,double)})))");
  const Call call{to_type_expr(translate(*expr))};
  EXPECT_FALSE(VendorPack().differs(call)) << to_string(*call.expr);
}

TEST_F(RandomTypes, ArePackedAlikeByMpiWhereItIsKnownToBeRight) {
  struct Tally {
    std::int64_t calls = 0, different = 0;
    std::optional<Call> smallest;
  };
  std::map<Trait, Tally> tallies;
  const VendorPack vendor;
  for (std::int64_t i = 0; i < options_.types; ++i) {
    auto call = calls_.next();
    call.expr = lowered(call.expr);
    if (may_crash(call)) continue;
    const auto trait = trait_of(call);
    auto& tally = tallies[trait];
    ++tally.calls;
    if (!vendor.differs(call)) continue;
    ++tally.different;
    EXPECT_TRUE(may_be_packed_wrongly(trait)) << to_string(trait) << ": type " << i << " of seed "
                                              << options_.seed << ": " << describe(call);
    if (!tally.smallest || to_string(*call.expr).size() < to_string(*tally.smallest->expr).size())
      tally.smallest = call;
  }
  for (const auto& [trait, tally] : tallies)
    std::printf("  %-22s %8lld calls, MPI_Pack differs in %lld\n",
                std::string(to_string(trait)).c_str(), static_cast<long long>(tally.calls),
                static_cast<long long>(tally.different));
  if (options_.vendor_bugs.empty()) return;
  for (const auto& [trait, tally] : tallies) {
    if (!tally.smallest) continue;
    const auto smallest = shrink(*tally.smallest, [&, wanted = trait](const Call& call) {
      return !may_crash(call) && trait_of(call) == wanted && vendor.differs(call);
    });
    vendor.write_report(smallest, trait, options_.vendor_bugs);
  }
}

}  // namespace halocline::dtype::test
