// SPDX-License-Identifier: BSD-3-Clause
// Tests every width of a run, in rows and lists of every short length. Random types meet them only
// by chance.
#include "dtype/pack/host/host_packer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "dtype/pack/host/segment.hpp"
#include "layout.hpp"

namespace halocline::dtype::test {

namespace {

using Bytes = std::vector<unsigned char>;

struct Block {
  std::size_t displacement, bytes;
};

// Packs and unpacks `count` instances of these runs, whole and in pieces. All other bytes must keep
// their values.
void expect_copied(const PackPlan& plan, const std::vector<Block>& runs, const std::string& what,
                   std::size_t count = 1) {
  constexpr std::size_t kGuard = 64;
  constexpr std::int64_t kPiece = 1009;
  const auto extent = static_cast<std::size_t>(plan.bounds().extent);
  std::size_t size = 0, end = 0;
  for (const auto& run : runs) {
    size += run.bytes * count;
    end = std::max(end, run.displacement + run.bytes);
  }
  ASSERT_EQ(plan.packed_bytes(static_cast<std::int64_t>(count)), static_cast<std::int64_t>(size))
      << what;
  Bytes memory(end + extent * (count - 1) + 2 * kGuard);
  for (std::size_t i = 0; i < memory.size(); ++i)
    memory[i] = static_cast<unsigned char>(i * 37 + i / 251);
  const auto for_each_run = [&](auto use) {
    auto at = kGuard;
    for (std::size_t i = 0; i < count; ++i)
      for (const auto& run : runs) {
        use(kGuard + i * extent + run.displacement, at, run.bytes);
        at += run.bytes;
      }
  };

  Bytes packed(size + 2 * kGuard, 0xEE), expected = packed, in_pieces = packed;
  for_each_run([&](std::size_t from, std::size_t to, std::size_t bytes) {
    std::memcpy(&expected[to], &memory[from], bytes);
  });
  HostPacker().pack(plan, &memory[kGuard], static_cast<std::int64_t>(count), &packed[kGuard]);
  ASSERT_EQ(packed, expected) << "packed " << what;
  Segment segment(plan, &memory[kGuard], static_cast<std::int64_t>(count));
  while (!segment.done())
    segment.pack(&in_pieces[kGuard + static_cast<std::size_t>(segment.position())], kPiece);
  ASSERT_EQ(in_pieces, expected) << "packed in pieces " << what;

  for (auto& byte : packed) byte = static_cast<unsigned char>(byte * 3 + 1);
  auto unpacked = memory, from_pieces = memory;
  for_each_run([&](std::size_t to, std::size_t from, std::size_t bytes) {
    std::memcpy(&unpacked[to], &packed[from], bytes);
  });
  HostPacker().unpack(plan, &packed[kGuard], &memory[kGuard], static_cast<std::int64_t>(count));
  ASSERT_EQ(memory, unpacked) << "unpacked " << what;
  Segment back(plan, &from_pieces[kGuard], static_cast<std::int64_t>(count));
  while (!back.done())
    back.unpack(&packed[kGuard + static_cast<std::size_t>(back.position())], kPiece);
  ASSERT_EQ(from_pieces, unpacked) << "unpacked in pieces " << what;
}

std::vector<Block> all_of(const std::vector<std::size_t>& displacements, std::size_t bytes) {
  std::vector<Block> runs;
  for (const auto at : displacements) runs.push_back({at, bytes});
  return runs;
}

std::string number(std::size_t value) {
  return std::to_string(value);
}

// Returns displacements at equal distances, or at irregular distances that stay a list.
std::vector<std::size_t> spread(std::size_t count, std::size_t run, bool regular) {
  std::vector<std::size_t> displacements;
  for (std::size_t i = 0, at = 0; i < count; ++i) {
    displacements.push_back(at);
    at += run + 1 + (regular ? 4 : i * i % 7);
  }
  return displacements;
}

PackPlan plan_of_blocks(const std::vector<std::size_t>& displacements, std::size_t run) {
  std::string list;
  for (const auto at : displacements) list += (list.empty() ? "" : ",") + std::to_string(at);
  return plan_of("hindexed_block(" + std::to_string(run) + ",{" + list + "},byte)");
}

}  // namespace

TEST(HostPacker, CopiesRunsOfEveryWidth) {
  std::vector<std::size_t> widths(600);
  std::iota(widths.begin(), widths.end(), 1);
  for (const std::size_t limit : {640, 1024, 2048, 4096})
    for (auto run = limit - 1; run <= limit + 1; ++run) widths.push_back(run);
  for (const auto run : widths)
    for (const std::size_t count : {1, 2, 3, 4, 5, 7, 8, 9, 13, 33})
      for (const bool regular : {true, false}) {
        const auto displacements = spread(count, run, regular);
        expect_copied(plan_of_blocks(displacements, run), all_of(displacements, run),
                      std::to_string(count) + (regular ? " regular" : " irregular") + " runs of " +
                          std::to_string(run) + " bytes",
                      run % 50 < 2 ? 5 : 1);
      }
}

TEST(HostPacker, CopiesRowsOfEveryShortLength) {
  for (const std::size_t run : {1, 2, 3, 4, 7, 8, 12, 16, 20, 24, 32, 40, 48, 63, 64, 65, 512, 776})
    for (std::size_t row = 2; row <= 17; ++row)
      for (const auto step : {run + 3, 2 * run, 3 * run, 4 * run}) {
        constexpr std::size_t kRows = 11;
        const auto next = row * step + 5;
        std::vector<std::size_t> displacements;
        for (std::size_t i = 0; i < kRows; ++i)
          for (std::size_t k = 0; k < row; ++k) displacements.push_back(i * next + k * step);
        expect_copied(plan_of("hvector(" + number(kRows) + ",1," + number(next) + ",hvector(" +
                              number(row) + "," + number(run) + "," + number(step) + ",byte))"),
                      all_of(displacements, run),
                      "rows of " + number(row) + " runs of " + number(run) + " bytes", row % 3 + 1);
      }
}

// Columns of a matrix: whole tiles, and partial tiles at both edges.
TEST(HostPacker, CopiesTilesOfEveryWidth) {
  for (std::size_t run = 1; run < 64; ++run)
    for (const std::size_t side : {13, 20, 24}) {
      const auto row = side * run;
      std::vector<std::size_t> displacements;
      for (std::size_t x = 0; x < side; ++x)
        for (std::size_t y = 0; y < side; ++y) displacements.push_back(y * row + x * run);
      const auto columns =
          plan_of("hvector(" + number(side) + ",1," + number(run) + ",hvector(" + number(side) +
                  "," + number(run) + "," + number(row) + ",byte))");
      EXPECT_GT(columns.program().root.strided.innermost_height, 0);
      expect_copied(columns, all_of(displacements, run),
                    "columns of " + number(side) + " runs of " + number(run) + " bytes",
                    run % 2 + 1);
    }
}

// A third loop whose steps do not all stay in a cache, and a fourth loop. Then instances a few
// bytes apart, whose loop is innermost.
TEST(HostPacker, CopiesTilesWithinLoops) {
  std::vector<std::size_t> displacements;
  for (std::size_t x = 0; x < 24; ++x)
    for (std::size_t w = 0; w < 3; ++w)
      for (std::size_t z = 0; z < 7; ++z)
        for (std::size_t y = 0; y < 64; ++y)
          displacements.push_back(x * 8 + w * 95232 + z * 12352 + y * 192);
  expect_copied(
      plan_of("hvector(24,1,8,hvector(3,1,95232,hvector(7,1,12352,hvector(64,1,192,double))))"),
      all_of(displacements, 8), "four loops");

  displacements.clear();
  for (std::size_t x = 0; x < 8; ++x)
    for (std::size_t y = 0; y < 32; ++y) displacements.push_back(x * 64 + y * 512);
  const auto near = plan_of("resized(hvector(8,1,64,hvector(32,1,512,double)),0,8)");
  EXPECT_EQ(near.program().root.strided.innermost_height, near.program().root.strided.top());
  for (const std::size_t count : {1, 2, 8})
    expect_copied(near, all_of(displacements, 8), number(count) + " instances 8 bytes apart",
                  count);
}

// Packs structs of two to five members in every order. Members of eight bytes behind short ones are
// stored over the end of these.
TEST(HostPacker, CopiesStructsOfMembersOfEveryWidth) {
  const std::size_t widths[] = {1, 2, 4, 8};
  for (std::size_t members = 2; members <= 5; ++members)
    for (std::size_t code = 0; code < std::size_t{1} << (2 * members); ++code)
      for (const std::size_t count : {4, 7}) {
        std::vector<Block> runs;
        std::string ones, displacements, types;
        std::size_t at = 1;
        for (std::size_t i = 0; i < members; ++i) {
          const auto bytes = widths[code >> (2 * i) & 3];
          const std::string comma = i == 0 ? "" : ",";
          runs.push_back({at, bytes});
          ones += comma + "1";
          displacements += comma + std::to_string(at);
          types += comma + "contiguous(" + std::to_string(bytes) + ",byte)";
          at += bytes + 1 + i % 3;
        }
        const auto text = "resized(struct({" + ones + "},{" + displacements + "},{" + types +
                          "}),0," + std::to_string(at) + ")";
        expect_copied(make_plan(*parse_type(text)), runs, text, count);
        if (HasFatalFailure()) return;
      }
}

// A struct of lists has as few stretches as members, or too many stretches.
TEST(HostPacker, CopiesListsWhoseRunsChange) {
  for (const std::vector<std::size_t>& lengths : {std::vector<std::size_t>{24, 8},
                                                  {8, 24, 12},
                                                  {200, 8},
                                                  {1, 300, 7},
                                                  {24, 8, 24, 8},
                                                  {15, 16, 17, 31, 32, 33},
                                                  {47, 48, 49, 63, 64, 65},
                                                  {511, 512, 513, 4095, 4096}})
    for (const std::size_t of_each : {40, 70, 3}) {
      for (const std::size_t times : {1, 20}) {
        std::vector<Block> runs;
        std::string blocklengths, displacements;
        std::size_t at = 0, seed = 1;
        for (std::size_t t = 0; t < times; ++t)
          for (const auto length : lengths)
            for (std::size_t i = 0; i < of_each; ++i) {
              runs.push_back({at, length});
              blocklengths += (blocklengths.empty() ? "" : ",") + number(length);
              displacements += (displacements.empty() ? "" : ",") + number(at);
              seed = seed * 1103515245 + 12345;
              at += length + 1 + seed / 65536 % 7;
            }
        expect_copied(plan_of("hindexed({" + blocklengths + "},{" + displacements + "},byte)"),
                      runs, number(runs.size()) + " runs, the first of " + number(lengths[0]),
                      times == 1 ? 3 : 1);
      }
    }
}

}  // namespace halocline::dtype::test
