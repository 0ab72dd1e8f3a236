// SPDX-License-Identifier: BSD-3-Clause
// What the random types do not reach: long runs, nests deeper than a kernel, and what Kokkos' tools
// see.
#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dtype/pack/kokkos/kokkos_packer.hpp"
#include "dtype/type_map.hpp"
#include "layout.hpp"

namespace halocline::dtype::test {

namespace {

using Bytes = std::vector<unsigned char>;

Bytes counting_bytes(std::int64_t length) {
  Bytes bytes(static_cast<std::size_t>(length));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(i * 31 + i / 251);
  return bytes;
}

// What Kokkos announces to a profiling tool while one of these lives.
class Announcements {
 public:
  Announcements() {
    kernels_.clear();
    fences_.clear();
    Kokkos::Tools::Experimental::set_begin_parallel_for_callback(
        [](const char* name, std::uint32_t, std::uint64_t*) { kernels_.emplace_back(name); });
    Kokkos::Tools::Experimental::set_begin_fence_callback(
        [](const char* name, std::uint32_t, std::uint64_t*) {
          // Kokkos itself fences around kernels as soon as a tool listens.
          if (std::string_view(name).find("Kokkos Profile Tool Fence") == std::string_view::npos)
            fences_.emplace_back(name);
        });
  }
  ~Announcements() {
    Kokkos::Tools::Experimental::set_begin_parallel_for_callback(nullptr);
    Kokkos::Tools::Experimental::set_begin_fence_callback(nullptr);
  }
  const std::vector<std::string>& kernels() const { return kernels_; }
  const std::vector<std::string>& fences() const { return fences_; }

 private:
  static inline std::vector<std::string> kernels_, fences_;
};

}  // namespace

template <class ExecutionSpace>
class KokkosPackerTest : public testing::Test {
 protected:
  // Packs and unpacks `count` instances at the begin of a buffer of non-negative displacements.
  void expect_type_map(const char* text, std::int64_t count) {
    const auto expr = parse_type(text);
    const auto map = type_map(*expr);
    const PackPlan plan(nest_of(*expr));
    const auto memory = counting_bytes(map.extent * count);
    const auto displacements = byte_displacements(map, count);
    Bytes expected, packed(displacements.size());
    for (const auto displacement : displacements)
      expected.push_back(memory[static_cast<std::size_t>(displacement)]);
    packer_.pack(plan, memory.data(), count, packed.data());
    packer_.fence();
    EXPECT_TRUE(packed == expected) << text;

    Bytes unpacked(memory.size(), 0x5A), wanted = unpacked;
    for (std::size_t i = 0; i < packed.size(); ++i)
      wanted[static_cast<std::size_t>(displacements[i])] = packed[i];
    packer_.unpack(plan, packed.data(), unpacked.data(), count);
    packer_.fence();
    EXPECT_TRUE(unpacked == wanted) << text;
  }

  KokkosPacker<ExecutionSpace> packer_;
};

struct SpaceNames {
  template <class ExecutionSpace>
  static std::string GetName(int) {
    return ExecutionSpace::name();
  }
};
using Spaces = testing::Types<Kokkos::Serial, Kokkos::OpenMP>;
TYPED_TEST_SUITE(KokkosPackerTest, Spaces, SpaceNames);

TYPED_TEST(KokkosPackerTest, LongRunsAreCopiedInPieces) {
  this->expect_type_map("contiguous(1000003,byte)", 1);
  this->expect_type_map("contiguous(131072,double)", 2);
  this->expect_type_map("vector(3,4097,5000,short)", 2);
  this->expect_type_map("vector(2,4096,8192,byte)", 3);
}

// More bytes than a step of the kernel takes, in counts that no power of two divides: steps begin
// in mid-level.
TYPED_TEST(KokkosPackerTest, ManyShortRuns) {
  this->expect_type_map("vector(5003,1,3,short)", 1);
  this->expect_type_map("vector(5003,1,3,short)", 3);
  this->expect_type_map("subarray(C,{40,50,60},{33,37,41},{1,2,3},short)", 2);
  this->expect_type_map("hvector(71,1,4,vector(89,1,71,float))", 1);
  this->expect_type_map("vector(7,1000,1003,short)", 5);
}

TYPED_TEST(KokkosPackerTest, NestsDeeperThanAKernel) {
  const auto* deep =
      "subarray(C,{3,4,3,4},{2,2,2,3},{1,1,0,1},subarray(F,{3,3,3,3},{2,2,2,2},{0,1,0,1},short))";
  ASSERT_GT(nest_of(deep).levels.size(),
            static_cast<std::size_t>(KokkosPacker<TypeParam>::kMaxKernelLevels));
  this->expect_type_map(deep, 1);
  this->expect_type_map(deep, 3);
}

TYPED_TEST(KokkosPackerTest, IsOneNamedKernelWithoutAFence) {
  const PackPlan plan(nest_of("subarray(C,{8,8,8},{2,3,4},{1,1,1},double)"));
  auto memory = counting_bytes(2 * 8 * 8 * 8 * 8);
  Bytes packed(static_cast<std::size_t>(plan.packed_bytes(2)));
  const Announcements seen;
  this->packer_.pack(plan, memory.data(), 2, packed.data());
  this->packer_.unpack(plan, packed.data(), memory.data(), 2);
  EXPECT_EQ(seen.kernels(), (std::vector<std::string>{"halocline::KokkosPacker::pack",
                                                      "halocline::KokkosPacker::unpack"}));
  EXPECT_EQ(seen.fences(), std::vector<std::string>{});
  this->packer_.fence();
  EXPECT_EQ(seen.fences(), std::vector<std::string>{"halocline::KokkosPacker::fence"});
}

TYPED_TEST(KokkosPackerTest, WithoutDataNothingIsLaunched) {
  const Announcements seen;
  this->packer_.pack(PackPlan(nest_of("contiguous(0,int)")), nullptr, 3, nullptr);
  this->packer_.pack(PackPlan(nest_of("int")), nullptr, 0, nullptr);
  EXPECT_TRUE(seen.kernels().empty());
}

}  // namespace halocline::dtype::test
