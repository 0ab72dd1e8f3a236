// SPDX-License-Identifier: BSD-3-Clause
// Tests what random types do not reach: jobs large enough for several threads, and the view of
// Kokkos' tools.
#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "byte_displacements.hpp"
#include "dtype/pack/host/host_packer.hpp"
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

// Records what Kokkos announces to a profiling tool during its lifetime.
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
  // Packs and unpacks `count` instances at the begin of a buffer, for non-negative displacements.
  void expect_type_map(const char* text, std::int64_t count) {
    const auto expr = parse_type(text);
    const auto map = type_map(*expr);
    const auto plan = plan_of(text);
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

  KokkosPacker<ExecutionSpace> packer_{ExecutionSpace(), 128 * 1024};
};

struct SpaceNames {
  template <class ExecutionSpace>
  static std::string GetName(int) {
    return ExecutionSpace::name();
  }
};
using Spaces = testing::Types<Kokkos::Serial, Kokkos::OpenMP>;
TYPED_TEST_SUITE(KokkosPackerTest, Spaces, SpaceNames);

TYPED_TEST(KokkosPackerTest, LongRunsAreShared) {
  this->expect_type_map("contiguous(1000003,byte)", 1);
  this->expect_type_map("contiguous(131072,double)", 2);
  this->expect_type_map("vector(3,130097,150000,short)", 2);
}

// Shares begin and end inside of levels, tiles, blocks and repetitions.
TYPED_TEST(KokkosPackerTest, ShortRunsAreShared) {
  this->expect_type_map("vector(150003,1,3,short)", 1);
  this->expect_type_map("vector(50003,1,3,short)", 3);
  this->expect_type_map("subarray(C,{140,50,60},{133,37,41},{1,2,3},short)", 2);
  this->expect_type_map("hvector(371,1,4,vector(289,1,371,float))", 1);
  this->expect_type_map("struct({1,1,3},{0,8,24},{char,double,int})", 30001);
  this->expect_type_map("indexed({3,1,2,5},{0,7,4,20},double)", 4001);
}

TYPED_TEST(KokkosPackerTest, FusedPlansAreShared) {
  const auto memory = counting_bytes(3000000);
  const auto plan = plan_of("vector(10007,3,5,float)");
  std::vector<PackJob> jobs;
  for (const std::int64_t start : {0, 200144, 1200000})
    jobs.push_back({plan, const_cast<unsigned char*>(memory.data()) + start, start == 0 ? 2 : 1});
  jobs.push_back({plan_of("contiguous(0,int)"), nullptr, 7});
  jobs.push_back({plan_of("contiguous(100000,int)"), const_cast<unsigned char*>(memory.data()) + 5,
                  1, 1000000});
  // This job's bytes come behind the job before, wherever that job is.
  jobs.push_back({plan_of("vector(100,1,2,int)"), const_cast<unsigned char*>(memory.data()), 1});
  const FusedPlan fused(jobs);
  EXPECT_EQ(fused.packed_bytes(), 4 * 10007 * 12 + 400000 + 400);

  Bytes expected(1400400, 0x5A), packed = expected;
  std::int64_t at = 0;
  for (const auto& job : jobs) {
    at = job.packed_offset.value_or(at);
    HostPacker().pack(job.plan, job.buffer, job.count, expected.data() + at);
    at += job.plan.packed_bytes(job.count);
  }
  this->packer_.pack(fused, packed.data());
  this->packer_.fence();
  EXPECT_TRUE(packed == expected);
}

TYPED_TEST(KokkosPackerTest, CopyPlansAreShared) {
  auto from = counting_bytes(6000000);
  std::vector<CopyJob> jobs;
  Bytes to(9000000, 0x5A), expected = to;
  std::int64_t at = 3;
  const auto add = [&](const char* source, std::int64_t count, const char* destination) {
    const auto a = plan_of(source), b = plan_of(destination);
    jobs.push_back({a, from.data() + 5, count, b, to.data() + at, 1});
    Bytes packed(static_cast<std::size_t>(a.packed_bytes(count)));
    HostPacker().pack(a, from.data() + 5, count, packed.data());
    HostPacker().unpack(b, packed.data(), expected.data() + at, 1);
    at += b.bounds().extent + 7;
  };
  add("contiguous(3000017,byte)", 1, "contiguous(3000017,byte)");
  add("vector(30000,3,5,double)", 1, "vector(10000,9,11,double)");
  add("subarray(C,{140,50,60},{133,37,41},{1,2,3},short)", 1, "vector(4921,41,50,short)");
  std::string list = "0";
  for (int i = 1; i < 1000; ++i) list += "," + std::to_string(3 * i + i * i % 7);
  add(("indexed_block(1,{" + list + "},double)").c_str(), 100, "vector(100000,1,2,double)");
  // The same places in another order: two nests that take turns.
  for (const std::int64_t row : {8, 0}) {
    const auto plan = plan_of("vector(30000,3,6,short)");
    jobs.push_back({plan, from.data() + row, 1, plan, to.data() + at + row, 1});
    HostPacker().copy(
        CopyPlan({{plan, from.data() + row, 1, plan, expected.data() + at + row, 1}}));
  }
  const CopyPlan plan(jobs);
  EXPECT_GT(plan.bytes(), 4 << 20) << "long rows are not stored past the caches";
  const Announcements seen;
  this->packer_.copy(plan);
  this->packer_.fence();
  EXPECT_TRUE(to == expected);
  EXPECT_EQ(seen.kernels().size(), TypeParam().concurrency() > 1 ? 1u : 0u);
}

TYPED_TEST(KokkosPackerTest, LargeJobsAreOneNamedKernelWithoutAFence) {
  const auto plan = plan_of("vector(100000,3,4,double)");
  auto memory = counting_bytes(100000 * 4 * 8);
  Bytes packed(static_cast<std::size_t>(plan.packed_bytes(1)));
  const KokkosPacker<TypeParam> packer;
  const Announcements seen;
  packer.pack(plan, memory.data(), 1, packed.data());
  packer.unpack(plan, packed.data(), memory.data(), 1);
  if (TypeParam().concurrency() > 1) {
    EXPECT_EQ(seen.kernels(), (std::vector<std::string>{"halocline::KokkosPacker::pack",
                                                        "halocline::KokkosPacker::unpack"}));
  } else {
    EXPECT_TRUE(seen.kernels().empty());
  }
  EXPECT_EQ(seen.fences(), std::vector<std::string>{});
  packer.fence();
  EXPECT_EQ(seen.fences(), std::vector<std::string>{"halocline::KokkosPacker::fence"});
}

TYPED_TEST(KokkosPackerTest, SmallJobsPayForNoKernel) {
  const auto plan = plan_of("vector(40000,3,4,double)");
  auto memory = counting_bytes(40000 * 4 * 8);
  Bytes packed(static_cast<std::size_t>(plan.packed_bytes(1)));
  const KokkosPacker<TypeParam> packer;
  const Announcements seen;
  packer.pack(plan, memory.data(), 1, packed.data());
  packer.pack(plan_of("contiguous(0,int)"), nullptr, 3, nullptr);
  packer.pack(plan_of("int"), nullptr, 0, nullptr);
  EXPECT_TRUE(seen.kernels().empty());
}

}  // namespace halocline::dtype::test
