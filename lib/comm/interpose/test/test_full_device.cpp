// SPDX-License-Identifier: BSD-3-Clause
// Tests that packing is left to MPI if the device has too little memory for it.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "comm/interpose/devices.hpp"
#include "comm/interpose/test/layout.hpp"
#include "comm/interpose/types.hpp"
#include "dtype/device/emulated_device.hpp"

namespace halocline::interpose {
namespace {

using dtype::EmulatedDevice;
using Doubles = std::vector<double, test::Allocator<double>>;

// Lets the device allocate no more memory, while it lives.
class Full {
 public:
  explicit Full(EmulatedDevice& device) : device_(device) { device.limit(device.bytes()); }
  Full(const Full&) = delete;
  Full& operator=(const Full&) = delete;
  ~Full() { device_.limit(static_cast<std::size_t>(-1)); }

 private:
  EmulatedDevice& device_;
};

class FullDevice : public testing::Test {
 protected:
  static constexpr int kBlocks = 1000, kDoubles = 4 * kBlocks;
  static constexpr int kPackedBytes = kBlocks * static_cast<int>(sizeof(double));

  void SetUp() override {
    device_ = dynamic_cast<EmulatedDevice*>(dtype::current_device());
    // A real device would need all its memory taken, also from other users.
    if (device_ == nullptr) GTEST_SKIP() << "only an emulated device has as much memory as we say";
    std::iota(from_.begin(), from_.end(), 0.0);
    for (int i = 0; i < kBlocks; ++i) places_.push_back(4 * i + i * i % 3);
  }
  void TearDown() override {
    if (type_ != MPI_DATATYPE_NULL) MPI_Type_free(&type_);
  }

  // Makes a type of single doubles at `places_`. With `strided`, it is a vector. Else it is a list,
  // and kernels need a table in memory of the device.
  void make_type(bool strided) {
    if (strided) {
      for (int i = 0; i < kBlocks; ++i) places_[static_cast<std::size_t>(i)] = 3 * i;
      MPI_Type_vector(kBlocks, 1, 3, MPI_DOUBLE, &type_);
    } else {
      MPI_Type_create_indexed_block(kBlocks, 1, places_.data(), MPI_DOUBLE, &type_);
    }
    MPI_Type_commit(&type_);
  }
  const dtype::PackPlan& plan() {
    return *committed_type(type_)->to_pack(type_, from_.data(), 1).plan;
  }

  template <class Packed>
  void expect_packed(const Packed& packed) const {
    for (std::size_t i = 0; i < places_.size(); ++i)
      ASSERT_EQ(packed[i], from_[static_cast<std::size_t>(places_[i])]) << i;
  }
  // Fails unless exactly the doubles at `places_` were unpacked.
  void expect_unpacked() {
    std::vector<double> expected(kDoubles, -1);
    for (const auto place : places_)
      expected[static_cast<std::size_t>(place)] = from_[static_cast<std::size_t>(place)];
    EXPECT_TRUE(std::equal(to_.begin(), to_.end(), expected.begin()));
    std::fill(to_.begin(), to_.end(), -1);
  }
  template <class Packed>
  void pack_and_unpack(Packed& packed) {
    std::fill(packed.begin(), packed.end(), -1);
    int position = 0;
    MPI_Pack(from_.data(), 1, type_, packed.data(), kPackedBytes, &position, MPI_COMM_SELF);
    EXPECT_EQ(position, kPackedBytes);
    expect_packed(packed);
    position = 0;
    MPI_Unpack(packed.data(), kPackedBytes, &position, to_.data(), 1, type_, MPI_COMM_SELF);
    EXPECT_EQ(position, kPackedBytes);
    expect_unpacked();
  }
  template <class Packed>
  void expect_by_device(Packed& packed) {
    EXPECT_TRUE(pack_by_device(plan(), from_.data(), 1, packed.data()));
    expect_packed(packed);
    EXPECT_TRUE(unpack_by_device(plan(), packed.data(), to_.data(), 1));
    expect_unpacked();
  }
  void exchange() {
    MPI_Sendrecv(from_.data(), 1, type_, 0, 0, to_.data(), 1, type_, 0, 0, MPI_COMM_SELF,
                 MPI_STATUS_IGNORE);
    expect_unpacked();
  }

  EmulatedDevice* device_ = nullptr;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  std::vector<int> places_;
  Doubles from_ = Doubles(kDoubles), to_ = Doubles(kDoubles, -1);
  std::vector<double> packed_ = std::vector<double>(kBlocks);
};

TEST_F(FullDevice, LeavesToMpiWhatItHasNoRoomFor) {
  make_type(true);
  release_devices();
  {
    const Full full(*device_);
    EXPECT_FALSE(pack_by_device(plan(), from_.data(), 1, packed_.data()));
    EXPECT_FALSE(unpack_by_device(plan(), packed_.data(), to_.data(), 1));
    pack_and_unpack(packed_);
    exchange();
  }
  expect_by_device(packed_);
}

TEST_F(FullDevice, LeavesToMpiWhatItHasNoRoomForTheListsOf) {
  make_type(false);
  Doubles packed_there(kBlocks);
  // Packing this type leaves memory that is kept. So there is memory for all but the lists.
  MPI_Datatype strided = MPI_DATATYPE_NULL;
  MPI_Type_vector(kBlocks, 1, 2, MPI_DOUBLE, &strided);
  MPI_Type_commit(&strided);
  const auto keep_memory = [&] {
    MPI_Sendrecv(from_.data(), 1, strided, 0, 0, to_.data(), 1, strided, 0, 0, MPI_COMM_SELF,
                 MPI_STATUS_IGNORE);
    std::fill(to_.begin(), to_.end(), -1);
  };
  keep_memory();
  {
    const Full full(*device_);
    keep_memory();
    exchange();
    EXPECT_FALSE(pack_by_device(plan(), from_.data(), 1, packed_.data()));
    pack_and_unpack(packed_);
    pack_and_unpack(packed_there);
  }
  exchange();
  expect_by_device(packed_there);
  MPI_Type_free(&strided);
}

}  // namespace
}  // namespace halocline::interpose
