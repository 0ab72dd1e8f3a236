// SPDX-License-Identifier: BSD-3-Clause
// A device without memory for packed bytes leaves all to MPI.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <cstring>

#include "comm/interpose/devices.hpp"
#include "comm/interpose/test/layout.hpp"
#include "comm/interpose/types.hpp"
#include "dtype/device/emulated_device.hpp"

namespace halocline::interpose {
namespace {

// No memory from its begin to its end, but for what is allocated already.
class Full {
 public:
  Full() {
    release_devices();
    device().limit(device().bytes());
  }
  Full(const Full&) = delete;
  Full& operator=(const Full&) = delete;
  ~Full() { device().limit(static_cast<std::size_t>(-1)); }

  static dtype::EmulatedDevice& device() {
    return dynamic_cast<dtype::EmulatedDevice&>(*dtype::current_device());
  }
};

TEST(FullDevice, LeavesAllToMpi) {
  constexpr int kBlocks = 100, kStride = 3, kDoubles = kBlocks * kStride;
  constexpr int kPackedBytes = kBlocks * static_cast<int>(sizeof(double));
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(kBlocks, 1, kStride, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  std::vector<double, test::Allocator<double>> memory(kDoubles), to(kDoubles);
  for (int i = 0; i < kDoubles; ++i) memory[static_cast<std::size_t>(i)] = i;
  std::vector<double> packed(kBlocks);
  const auto pack_and_unpack = [&] {
    std::fill(packed.begin(), packed.end(), -1);
    std::fill(to.begin(), to.end(), -1);
    int position = 0;
    MPI_Pack(memory.data(), 1, type, packed.data(), kPackedBytes, &position, MPI_COMM_SELF);
    EXPECT_EQ(position, kPackedBytes);
    for (int i = 0; i < kBlocks; ++i) ASSERT_EQ(packed[static_cast<std::size_t>(i)], i * kStride);
    position = 0;
    MPI_Unpack(packed.data(), kPackedBytes, &position, to.data(), 1, type, MPI_COMM_SELF);
    EXPECT_EQ(position, kPackedBytes);
    for (int i = 0; i < kDoubles; ++i)
      ASSERT_EQ(to[static_cast<std::size_t>(i)], i % kStride == 0 ? i : -1);
  };
  const auto by = known_type(type)->to_pack(type, memory.data(), 1);
  ASSERT_NE(by.plan, nullptr);
  {
    const Full full;
    EXPECT_FALSE(pack_by_device(*by.plan, memory.data(), 1, packed.data()));
    EXPECT_FALSE(unpack_by_device(*by.plan, packed.data(), to.data(), 1));
    pack_and_unpack();
    std::fill(to.begin(), to.end(), -1);
    MPI_Sendrecv(memory.data(), 1, type, 0, 0, to.data(), 1, type, 0, 0, MPI_COMM_SELF,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < kDoubles; ++i)
      ASSERT_EQ(to[static_cast<std::size_t>(i)], i % kStride == 0 ? i : -1);
  }
  EXPECT_TRUE(pack_by_device(*by.plan, memory.data(), 1, packed.data()));
  pack_and_unpack();
  MPI_Type_free(&type);
}

}  // namespace
}  // namespace halocline::interpose
