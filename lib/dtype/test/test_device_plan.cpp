// SPDX-License-Identifier: BSD-3-Clause
// Tests plans as devices execute them, emulated: all kernels, all ways into a table, places beyond
// any memory. test_random_types.cpp covers random types.
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "dtype/pack/block_list.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "dtype/type_map.hpp"
#include "emulated.hpp"
#include "layout.hpp"

namespace halocline::dtype::test {

namespace {

using device::Address;
using device::CopyDirection;
using device::DevicePlan;
using device::JobTable;
using device::TableJob;

using Bytes = std::vector<unsigned char>;

Bytes noise(std::int64_t length, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  Bytes bytes(static_cast<std::size_t>(length));
  for (auto& byte : bytes) byte = static_cast<unsigned char>(engine());
  return bytes;
}

Address address(const void* pointer) {
  return reinterpret_cast<Address>(pointer);
}

TableJob job_of(const DevicePlan& plan, std::int64_t count, std::vector<Address> buffers) {
  return {.plan = &plan,
          .tables = address(plan.tables().data()),
          .count = count,
          .buffers = std::move(buffers)};
}

// Returns the table of one plan whose buffers have this alignment.
JobTable table_of(const char* text, std::int64_t alignment = 16, std::int64_t count = 1) {
  const DevicePlan plan(plan_of(text));
  const auto job = job_of(plan, count, {0});
  return device::make_table({&job, 1}, alignment);
}

// Returns the bytes of the words of all entries; 0 if they differ.
int word_bytes(const JobTable& table) {
  std::set<int> found;
  const auto look = [&](const auto& view) {
    for (std::uint32_t i = 0; i < view.header->entries; ++i)
      found.insert(1 << view.entries[i].word_log2);
  };
  if (table.wide)
    look(device::TableView<device::Wide>(table.bytes.data()));
  else
    look(device::TableView<device::Narrow>(table.bytes.data()));
  return found.size() == 1 ? *found.begin() : 0;
}

// Returns the types that a box of points^3 doubles sends to its 26 neighbours.
std::vector<std::string> regions(int points, int radius) {
  std::vector<std::string> out;
  const auto stored = std::to_string(points + 2 * radius);
  for (int d = 0; d < 27; ++d) {
    const int steps[] = {d / 9 - 1, d / 3 % 3 - 1, d % 3 - 1};
    std::string extent, start;
    for (const int step : steps) {
      extent += (extent.empty() ? "" : ",") + std::to_string(step == 0 ? points : radius);
      start += (start.empty() ? "" : ",") + std::to_string(step > 0 ? points : radius);
    }
    if (d != 13)
      out.push_back("subarray(C,{" + stored + "," + stored + "," + stored + "},{" + extent + "},{" +
                    start + "},double)");
  }
  return out;
}

// Packs all jobs by `packer` and by the host packer from one memory, and unpacks into another
// memory.
void expect_as_host(const std::vector<PackJob>& jobs, const TablePacker& packer,
                    unsigned char* begin, std::int64_t length) {
  const FusedPlan fused(jobs);
  std::int64_t bytes = 0;
  for (const auto& job : fused.jobs()) bytes = std::max(bytes, job.packed_offset + job.bytes());
  Bytes expected(static_cast<std::size_t>(bytes), 0x5A), packed = expected;
  HostPacker().pack(fused, expected.data());
  packer.prepare(fused);
  packer.pack(fused, packed.data());
  EXPECT_TRUE(packed == expected);

  const auto stream = noise(bytes, 7);
  const Bytes before(begin, begin + length);
  HostPacker().unpack(fused, stream.data());
  const Bytes wanted(begin, begin + length);
  std::copy(before.begin(), before.end(), begin);
  packer.unpack(fused, stream.data());
  EXPECT_TRUE(Bytes(begin, begin + length) == wanted);
}

}  // namespace

TEST(JobTable, WordsDivideAllThatMovesThePointer) {
  // Errata B.5: the base address and the packed position decide, too.
  const auto word = [](const char* text, std::int64_t alignment) {
    return word_bytes(table_of(text, alignment));
  };
  EXPECT_EQ(word("vector(5,2,3,float)", 16), 4) << "stride 12 is not a multiple of the block";
  EXPECT_EQ(word("vector(5,2,4,float)", 16), 8);
  EXPECT_EQ(word("vector(5,4,8,float)", 16), 16);
  EXPECT_EQ(word("vector(5,4,8,float)", 8), 8) << "a base address of 8";
  EXPECT_EQ(word("vector(5,4,8,float)", 2), 2);
  EXPECT_EQ(word("vector(5,4,8,float)", 1), 1);
  EXPECT_EQ(word("subarray(C,{16},{4},{1},float)", 16), 4) << "start 4";
  EXPECT_EQ(word("hvector(3,1,24,double)", 16), 8) << "the packed position 8 of run 1";

  const DevicePlan plan(plan_of("vector(5,4,8,float)"));
  auto job = job_of(plan, 1, {64, 128});
  job.packed_step = 96;
  const auto word_of = [&] { return word_bytes(device::make_table({&job, 1}, 16)); };
  EXPECT_EQ(word_of(), 16);
  job.buffers[1] = 132;
  EXPECT_EQ(word_of(), 4) << "the second buffer";
  job.buffers[1] = 128;
  job.packed_step = 88;
  EXPECT_EQ(word_of(), 8) << "the second one's packed position";
  job.packed_step = 96, job.packed_offset = 2;
  EXPECT_EQ(word_of(), 2) << "the first one's";
}

TEST(JobTable, OneInstanceNeedsNoAlignedExtent) {
  const char* odd = "resized(vector(4,2,4,double),0,131)";
  EXPECT_EQ(word_bytes(table_of(odd, 16, 1)), 16);
  EXPECT_EQ(word_bytes(table_of(odd, 16, 2)), 1);
  EXPECT_EQ(word_bytes(table_of(odd, 16, 0)), 1) << "any count";
}

TEST(JobTable, RunsThatContinueAreOne) {
  const auto table = table_of("contiguous(6,double)", 16, 1000);
  EXPECT_EQ(table.levels, 1);
  EXPECT_EQ(word_bytes(table), 16);
  EXPECT_EQ(table.words, 3000u);
}

TEST(DevicePlan, OnlyListsHaveTables) {
  for (const auto* text :
       {"double", "vector(5,2,3,float)", "subarray(C,{16,16,16},{5,5,5},{1,2,3},double)",
        "struct({1,1,3},{0,8,24},{char,double,int})", "hvector(16,1,8,vector(16,1,16,double))",
        "triangular(100,5,1,800,double)"})
    EXPECT_TRUE(DevicePlan(plan_of(text)).tables().empty()) << text;
  EXPECT_EQ(DevicePlan(plan_of("indexed_block(1,{0,5,7,8,20,21},double)")).tables().size(), 24u)
      << "32 bits each";
}

TEST(JobTable, AHaloOfEightFieldsFitsIntoTheArgumentsOfALaunch) {
  // 26 regions of 256^3 points with radius 3, in 8 fields that follow each other.
  const auto storage = std::int64_t{262} * 262 * 262 * 8;
  std::vector<DevicePlan> plans;
  std::vector<TableJob> jobs;
  plans.reserve(26);
  std::int64_t packed = 0;
  for (const auto& text : regions(256, 3)) {
    const auto plan = plan_of(text.c_str());
    plans.emplace_back(plan);
    auto job = job_of(plans.back(), 1, {});
    for (int field = 0; field < 8; ++field)
      job.buffers.push_back(static_cast<Address>(field * storage + 4096));
    job.packed_offset = packed, job.packed_step = plan.packed_bytes(1);
    packed += 8 * plan.packed_bytes(1);
    jobs.push_back(std::move(job));
  }
  EXPECT_EQ(packed, 77280768);
  const auto table = device::make_table(jobs, 16);
  EXPECT_LE(table.bytes.size(), 4032u);
  EXPECT_FALSE(table.wide);
  EXPECT_EQ(word_bytes(table), 8);
  EXPECT_EQ(table.levels, 3);
  EXPECT_EQ(table.words, 77280768u / 8);
}

// Blocks of unrolled kernels walk through their entries, so no block may have many.
TEST(JobTable, IsForUnrolledKernelsIfBlocksHaveFewEntries) {
  const DevicePlan large(plan_of("vector(100000,1,2,double)")), one(plan_of("double"));
  const auto table_with = [&](int small) {
    std::vector<TableJob> jobs;
    for (int i = 0; i < small; ++i) {
      jobs.push_back(job_of(one, 1, {static_cast<Address>(16 * i)}));
      jobs.back().packed_offset = 8 * i;
    }
    jobs.push_back(job_of(large, 1, {1 << 20}));
    jobs.back().packed_offset = 8 * small;
    return device::make_table(jobs, 16);
  };
  EXPECT_GT(table_with(10).unrolled_levels(1), 0);
  EXPECT_EQ(table_with(1000).unrolled_levels(1), 0) << "most words are in one entry, but some not";

  std::string lengths, displacements, types;
  for (int i = 0; i < 20; ++i) {
    const std::string comma = i == 0 ? "" : ",";
    lengths += comma + "1";
    displacements += comma + std::to_string(400 * i);
    types +=
        comma + "vector(" + std::to_string(3 + i % 2) + ",1," + std::to_string(2 + i) + ",float)";
  }
  const auto text = "struct({" + lengths + "},{" + displacements + "},{" + types + "})";
  const auto any_count = table_of(text.c_str(), 16, 0);
  ASSERT_GT(any_count.levels, 0);
  EXPECT_EQ(any_count.unrolled_levels(1), 0);
  EXPECT_GT(any_count.unrolled_levels(100000), 0);
}

TEST(JobTable, KnowsWhatIsPackedWithoutGaps) {
  const auto is_linear = [](const JobTable& table) {
    const device::TableView<device::Narrow> view(table.bytes.data());
    return view.entries[0].is_linear;
  };
  EXPECT_TRUE(is_linear(table_of("subarray(C,{9,9,9},{3,4,5},{1,1,1},double)")));
  EXPECT_TRUE(is_linear(table_of("vector(5,1,3,float)", 16, 0)));
  EXPECT_FALSE(is_linear(table_of("hvector(64,1,8,vector(48,1,64,double))"))) << "tiles";
  const DevicePlan plan(plan_of("vector(5,1,3,float)"));
  auto job = job_of(plan, 1, {64, 128});
  job.packed_step = 20;
  EXPECT_TRUE(is_linear(device::make_table({&job, 1}, 16)));
  job.packed_step = 24;
  EXPECT_FALSE(is_linear(device::make_table({&job, 1}, 16))) << "a gap between buffers";
}

// Every kernel: words of 1 to 16 bytes, 1 to 4 levels and more, lists, narrow and wide.
TEST(EmulatedPacker, RunsAllKernels) {
  struct Basic {
    const char* name;
    int bytes;
  };
  std::set<std::pair<int, int>> unrolled;
  bool general = false;
  for (const auto& [name, bytes] :
       {Basic{"byte", 1}, {"short", 2}, {"float", 4}, {"double", 8}, {"c_double_complex", 16}}) {
    const std::string basic = name;
    const std::vector<std::string> types = {
        "contiguous(700," + basic + ")",
        "vector(300,1,3," + basic + ")",
        "vector(300,3,5," + basic + ")",
        "subarray(C,{30,40,9},{11,23,3},{1,2,3}," + basic + ")",
        "subarray(C,{7,30,40,9},{3,11,23,3},{1,1,2,3}," + basic + ")",
        "subarray(C,{3,7,30,10,9},{2,3,11,9,3},{1,1,1,1,3}," + basic + ")",
        "subarray(C,{3,3,7,10,10,9},{2,2,3,5,7,3},{0,1,1,1,1,3}," + basic + ")",
        "hvector(101,1," + std::to_string(bytes) + ",vector(77,1,101," + basic + "))",
        "indexed_block(2,{0,5,7,9,20,33,50}," + basic + ")",
        "indexed({3,1,2,5,1,2,3,4,5,6,1,2,9,1,1,2,1,7,2,1},"
        "{0,7,9,20,40,50,60,70,80,90,100,110,120,130,140,150,160,170,180,190}," +
            basic + ")",
        "struct({2,1},{0,64},{" + basic + ",vector(5,1,7," + basic + ")})",
        "bucket(8,{3,0,5,8,1,7,2,2,3,6,4},vector(2,1,2," + basic + "))",
        "triangular(20,1,1,25," + basic + ")",
    };
    for (const auto& text : types) {
      SCOPED_TRACE(text);
      const auto plan = plan_of(text.c_str());
      const auto length = plan.bounds().extent * 3 + 4096;
      auto memory = noise(length, 3);
      auto* begin = reinterpret_cast<unsigned char*>((address(memory.data()) + 15) / 16 * 16);
      for (const std::int64_t count : {1, 3}) {
        Bytes expected(static_cast<std::size_t>(plan.packed_bytes(count))), packed = expected;
        HostPacker().pack(plan, begin, count, expected.data());
        EmulatedPacker().pack(plan, begin, count, packed.data());
        EXPECT_TRUE(packed == expected);
        std::fill(packed.begin(), packed.end(), 0);
        WideEmulation().pack(plan, begin, count, packed.data());
        EXPECT_TRUE(packed == expected) << "wide";
        expect_as_host({{plan, begin, count}}, EmulatedPacker(), memory.data(), length - 16);
      }
      const auto table = table_of(text.c_str());
      if (table.levels > 0)
        unrolled.insert({word_bytes(table), table.levels});
      else
        general = true;
    }
  }
  EXPECT_TRUE(general);
  for (const int word : {1, 2, 4, 8, 16})
    for (int levels = 1; levels <= device::kMaxUnrolledLevels; ++levels)
      EXPECT_TRUE(unrolled.contains({word, levels})) << word << " bytes, " << levels << " levels";
}

TEST(EmulatedPacker, RunsJobsOfAllKindsInOneLaunch) {
  constexpr std::int64_t kSlot = 100000;
  auto memory = noise(32 * kSlot, 11);
  const char* const types[] = {"vector(30,3,5,double)",
                               "subarray(C,{30,40,9},{11,23,3},{1,2,3},float)",
                               "indexed_block(2,{0,5,7,9,20,33,50},short)",
                               "contiguous(1000,byte)",
                               "struct({1,1,3},{0,8,24},{char,double,int})",
                               "contiguous(1,double)",
                               "contiguous(0,int)",
                               "hvector(33,1,8,vector(41,1,33,double))"};
  std::mt19937_64 engine(5);
  for (int round = 0; round < 50; ++round) {
    std::vector<PackJob> jobs;
    // Each job has a slot, so that places do not overlap.
    std::vector<int> slots(32);
    std::iota(slots.begin(), slots.end(), 0);
    std::shuffle(slots.begin(), slots.end(), engine);
    const auto n = 1 + engine() % slots.size();
    const bool gaps = round % 3 == 2;
    std::int64_t packed = 0;
    const auto odd = round % 2 == 0 ? 1u : 13u;
    for (std::size_t i = 0; i < n; ++i) {
      const auto plan = plan_of(types[engine() % std::size(types)]);
      const auto count = static_cast<std::int64_t>(engine() % 3);
      auto* buffer = memory.data() + slots[i] * kSlot + engine() % odd;
      packed += gaps ? static_cast<std::int64_t>(engine() % 5) : 0;
      jobs.push_back({plan, buffer, count, packed});
      packed += plan.packed_bytes(count);
    }
    // Small tables travel as arguments, larger ones do not.
    expect_as_host(jobs, EmulatedPacker(round % 4 == 0 ? 64 : 4032), memory.data(),
                   std::ssize(memory));
  }
}

namespace {

// Returns the displacement of byte `position` of the packed stream of `count` instances.
std::int64_t displacement_of(const PackPlan& plan, std::int64_t count, std::int64_t position) {
  MemoryBlock block{};
  list_blocks(plan, count, position, {&block, 1});
  return block.offset;
}

// Returns the place of word i of an entry. Expects that unrolled kernels find the same place, if
// there is one for the table.
template <class Form>
device::Place place_of(const JobTable& table, const device::TableView<Form>& view,
                       const device::Entry<Form>& entry, typename Form::Index i,
                       const device::LaunchArguments& call) {
  const auto place = device::place_of(view, entry, i, call);
  if constexpr (std::is_same_v<Form, device::Narrow>) {
    const auto expect_same = [&](auto levels) {
      const device::StridedEntry<decltype(levels)::value, Form> strided(view, entry, call);
      device::with_word(entry.word_log2, [&](auto word) {
        using Word = decltype(word);
        auto found = strided.template place_of<Word, false>(i);
        EXPECT_EQ(found.memory, place.memory);
        EXPECT_EQ(found.packed, place.packed);
        if (!entry.is_linear) return;
        found = strided.template place_of<Word, true>(i);
        EXPECT_EQ(found.memory, place.memory);
        EXPECT_EQ(found.packed, place.packed);
      });
    };
    [&]<int... kBefore>(std::integer_sequence<int, kBefore...>) {
      const auto expect_if = [&](auto levels) {
        if (table.levels == levels) expect_same(levels);
      };
      (expect_if(std::integral_constant<int, kBefore + 1>()), ...);
    }
    (std::make_integer_sequence<int, device::kMaxUnrolledLevels>());
  }
  return place;
}

template <class Form>
void expect_places(const JobTable& table, const PackPlan& plan, std::int64_t count) {
  const device::TableView<Form> view(table.bytes.data());
  const device::LaunchArguments call{.memory = 0,
                                     .packed = 0,
                                     .instances = count,
                                     .words = table.words * static_cast<std::uint64_t>(count),
                                     .per_thread = 1};
  std::mt19937_64 engine(1);
  for (int i = 0; i < 2000; ++i) {
    const auto from_end = engine() % 3 == 0;
    const auto word = from_end ? call.words - 1 - engine() % std::min<std::uint64_t>(call.words, 50)
                               : engine() % call.words;
    using Index = typename Form::Index;
    const auto number = static_cast<Index>(word);
    const auto entry = device::entry_of(view, call, number, 0, view.header->entries - 1);
    const auto before =
        entry == 0 ? 0 : view.entries[entry - 1].end * static_cast<Index>(call.instances);
    const auto place =
        place_of(table, view, view.entries[entry], static_cast<Index>(number - before), call);
    const auto packed = static_cast<std::int64_t>(place.packed);
    ASSERT_GE(packed, 0);
    ASSERT_LT(packed, plan.packed_bytes(count));
    ASSERT_EQ(static_cast<std::int64_t>(place.memory), displacement_of(plan, count, packed))
        << "word " << word;
  }
}

}  // namespace

// These types have more words, bytes and spans than any memory; only places are computed.
TEST(JobTable, FindsPlacesOfHugeTypes) {
  struct Case {
    const char* text;
    std::int64_t count;
    bool wide;
  };
  for (const auto& [text, count, wide] : {
           Case{"contiguous(2147483647,byte)", 1, false},
           {"contiguous(2147483647,byte)", 5, true},
           {"vector(1073741823,1,2,byte)", 1, false},
           {"vector(99991,10007,20011,short)", 1, false},
           {"hvector(3,1,3221225472,vector(99991,7,9,double))", 2, true},
           {"hvector(4000,1,-3221225472,vector(99991,7,9,double))", 3, true},
           {"subarray(C,{1031,1031,1031},{1009,1013,1019},{3,2,1},byte)", 2, false},
           {"hvector(30011,1,8,vector(29989,1,30011,double))", 1, false},
           {"hindexed_block(1,{0,5368709120,24,-99999999999},vector(1000,1,2,double))", 100000,
            true},
           {"struct({1,1},{0,16},{double,vector(3,1,2,char)})", 100000000, false},
       }) {
    SCOPED_TRACE(std::string(text) + " x " + std::to_string(count));
    const auto plan = plan_of(text);
    const DevicePlan form(plan);
    for (const bool any_count : {false, true}) {
      if (any_count && count == 1) continue;  // has a table of its own
      const auto job = job_of(form, any_count ? 0 : count, {0});
      const auto table = device::make_table({&job, 1}, 16, any_count && wide);
      EXPECT_EQ(table.wide, wide);
      const auto instances = any_count ? count : 1;
      if (any_count) {
        table.wide ? expect_places<device::Wide>(table, plan, instances)
                   : expect_places<device::Narrow>(table, plan, instances);
      } else {
        const PackPlan many(canonicalize(
            translate(*parse_type("contiguous(" + std::to_string(count) + "," + text + ")"))));
        table.wide ? expect_places<device::Wide>(table, many, 1)
                   : expect_places<device::Narrow>(table, many, 1);
      }
    }
  }
}

// Divisions by multiplication, at their largest errors: small divisors of the largest numbers.
TEST(JobTable, DividesExactly) {
  for (std::int64_t block = 2; block < 3000; ++block) {
    const auto blocks = ((std::int64_t{1} << 31) - 1) / block;
    const auto table = table_of(("vector(" + std::to_string(blocks) + "," + std::to_string(block) +
                                 "," + std::to_string(block + 1) + ",byte)")
                                    .c_str(),
                                1);
    ASSERT_FALSE(table.wide);
    ASSERT_EQ(table.levels, 2);
    const device::TableView<device::Narrow> view(table.bytes.data());
    const device::LaunchArguments call{
        .memory = 0, .packed = 0, .instances = 1, .words = table.words, .per_thread = 1};
    for (std::int64_t i = 1; i <= 3 * block; ++i) {
      const auto word = blocks * block - i;
      const auto place =
          place_of(table, view, view.entries[0], static_cast<std::uint32_t>(word), call);
      ASSERT_EQ(static_cast<std::int64_t>(place.memory), word / block * (block + 1) + word % block)
          << "word " << word << " in blocks of " << block;
      ASSERT_EQ(static_cast<std::int64_t>(place.packed), word);
    }
  }
}

// The words of a warp fill whole sectors in a row on both sides.
TEST(JobTable, TransposesRunInTiles) {
  const auto table = table_of("hvector(64,1,8,vector(48,1,64,double))");
  const device::TableView<device::Narrow> view(table.bytes.data());
  ASSERT_EQ(view.header->entries, 1u);
  EXPECT_EQ(table.levels, 4);
  const device::LaunchArguments call{
      .memory = 0, .packed = 0, .instances = 1, .words = table.words, .per_thread = 1};
  std::set<Address> memory_lines, packed_lines;
  for (std::uint32_t word = 0; word < 256; ++word) {
    const auto place = place_of(table, view, view.entries[0], word, call);
    memory_lines.insert(place.memory / 128);
    packed_lines.insert(place.packed / 128);
  }
  EXPECT_EQ(memory_lines.size(), 16u);
  EXPECT_EQ(packed_lines.size(), 16u);
}

namespace {

// Counts uploads and launches, without a device.
class CountingPacker final : public TablePacker {
 public:
  mutable int uploads = 0, launches = 0;
  mutable bool wide = false;
  mutable std::uint64_t words = 0;
  void fence() const override {}

 private:
  Backend backend() const override { return Backend::cuda; }
  std::shared_ptr<const void> upload(std::span<const std::byte> bytes) const override {
    ++uploads;
    auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
    const auto* data = copy->data();
    return {std::move(copy), data};
  }
  std::size_t argument_bytes(std::size_t bytes) const override { return bytes <= 4032 ? 4032 : 0; }
  void launch(const Launch& launch) const override {
    ++launches;
    wide = launch.table.wide;
    words = launch.call.words;
  }
};

}  // namespace

TEST(TablePacker, UploadsOnceAndLaunchesOnce) {
  const CountingPacker packer;
  auto memory = noise(1 << 16, 1);
  const auto strided = plan_of("vector(30,3,5,double)"),
             list = plan_of("indexed_block(2,{0,5,7,9,20,33,50},double)");
  packer.pack(strided, memory.data(), 3, memory.data() + 40000);
  EXPECT_EQ(packer.uploads, 0);
  std::vector<PackJob> jobs;
  for (int i = 0; i < 200; ++i)
    jobs.push_back({i % 2 == 0 ? strided : list, memory.data() + i * 8, 1 + i % 7});
  const FusedPlan fused(jobs);
  packer.prepare(fused);
  EXPECT_EQ(packer.launches, 1);
  const auto uploads = packer.uploads;
  EXPECT_GE(uploads, 1) << "the list";
  for (int i = 0; i < 3; ++i) packer.pack(fused, memory.data() + 32768);
  packer.pack(list, memory.data(), 2, memory.data() + 32768);
  EXPECT_EQ(packer.launches, 5);
  EXPECT_EQ(packer.uploads, uploads);
  packer.pack(list, memory.data(), 0, nullptr);
  EXPECT_EQ(packer.launches, 5);
}

// Words beyond the limit need 64 bits, for types of any size.
TEST(TablePacker, NumbersManyWordsBy64Bits) {
  const CountingPacker packer;
  alignas(16) unsigned char byte = 0;
  for (const auto* text : {"byte", "vector(1000000,1,2,byte)", "vector(3,1,2,double)"}) {
    const auto plan = plan_of(text);
    const auto limit = (std::int64_t{1} << 31) / plan.bounds().size;
    for (const std::int64_t count : {limit - 2, limit + 2}) {
      packer.pack(plan, &byte, count, &byte);
      EXPECT_EQ(packer.wide, count > limit) << text;
      EXPECT_GE(packer.words, static_cast<std::uint64_t>(count)) << text;
    }
  }
}

TEST(TablePacker, IsSafeInManyThreads) {
  const auto plan = plan_of("indexed_block(2,{0,5,7,9,20,33,50},vector(2,1,3,int))");
  const auto memory = noise(4096, 9);
  Bytes expected(static_cast<std::size_t>(plan.packed_bytes(3)));
  HostPacker().pack(plan, memory.data(), 3, expected.data());
  const EmulatedPacker packer;
  std::vector<Bytes> packed(8, Bytes(expected.size()));
  std::vector<std::thread> threads;
  for (auto& out : packed)
    threads.emplace_back([&] { packer.pack(plan, memory.data(), 3, out.data()); });
  for (auto& thread : threads) thread.join();
  for (const auto& out : packed) EXPECT_TRUE(out == expected);
}

}  // namespace halocline::dtype::test
