// SPDX-License-Identifier: BSD-3-Clause
// Every width of a run, in rows and lists of every short length: what random types meet by chance.
#include "dtype/pack/host/host_packer.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "layout.hpp"

namespace halocline::dtype::test {

namespace {

using Bytes = std::vector<unsigned char>;

// Packs and unpacks runs of `run` bytes at `displacements`; all other bytes must keep their values.
void expect_copied(const PackPlan& plan, const std::vector<std::size_t>& displacements,
                   std::size_t run, const std::string& what) {
  constexpr std::size_t kGuard = 64;
  const auto size = displacements.size() * run;
  ASSERT_EQ(plan.packed_bytes(1), static_cast<std::int64_t>(size)) << what;
  Bytes memory(displacements.back() + run + 2 * kGuard);
  for (std::size_t i = 0; i < memory.size(); ++i)
    memory[i] = static_cast<unsigned char>(i * 37 + i / 251);

  Bytes packed(size + 2 * kGuard, 0xEE), expected = packed;
  for (std::size_t i = 0; i < displacements.size(); ++i)
    std::memcpy(&expected[kGuard + i * run], &memory[kGuard + displacements[i]], run);
  HostPacker().pack(plan, &memory[kGuard], 1, &packed[kGuard]);
  ASSERT_EQ(packed, expected) << "packed " << what;

  for (auto& byte : packed) byte = static_cast<unsigned char>(byte * 3 + 1);
  auto unpacked = memory;
  for (std::size_t i = 0; i < displacements.size(); ++i)
    std::memcpy(&unpacked[kGuard + displacements[i]], &packed[kGuard + i * run], run);
  HostPacker().unpack(plan, &packed[kGuard], &memory[kGuard], 1);
  ASSERT_EQ(memory, unpacked) << "unpacked " << what;
}

// Distances between runs: all the same, or irregular, so that they stay a list.
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
  for (std::size_t run = 1; run <= 600; ++run)
    for (const std::size_t count : {1, 2, 3, 4, 5, 7, 8, 9, 13, 33})
      for (const bool regular : {true, false}) {
        const auto displacements = spread(count, run, regular);
        expect_copied(plan_of_blocks(displacements, run), displacements, run,
                      std::to_string(count) + (regular ? " regular" : " irregular") + " runs of " +
                          std::to_string(run) + " bytes");
      }
}

TEST(HostPacker, CopiesRowsOfEveryShortLength) {
  for (const std::size_t run : {1, 2, 3, 4, 7, 8, 12, 16, 20, 24, 32, 40, 48, 63, 64, 65})
    for (std::size_t row = 2; row <= 17; ++row) {
      constexpr std::size_t kRows = 70;  // more runs than a short list
      const auto step = run + 3, next = row * step + 5;
      std::vector<std::size_t> displacements;
      for (std::size_t i = 0; i < kRows; ++i)
        for (std::size_t k = 0; k < row; ++k) displacements.push_back(i * next + k * step);
      const auto number = [](std::size_t value) { return std::to_string(value); };
      expect_copied(plan_of("hvector(" + number(kRows) + ",1," + number(next) + ",hvector(" +
                            number(row) + "," + number(run) + "," + number(step) + ",byte))"),
                    displacements, run,
                    "rows of " + number(row) + " runs of " + number(run) + " bytes");
    }
}

}  // namespace halocline::dtype::test
