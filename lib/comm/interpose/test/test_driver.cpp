// SPDX-License-Identifier: BSD-3-Clause
// Tests a driver of an unusable device that is loaded while the program runs. Data in its memory
// are left to MPI, and not even read for measuring.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/mman.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>

#include "comm/interpose/types.hpp"

namespace halocline::interpose {
namespace {

constexpr int kBlocks = 512, kStride = 3;
constexpr std::size_t kPage = 4096;
constexpr int kUses = 40;  // enough for the type to be read
constexpr int kPackedBytes = kBlocks * static_cast<int>(sizeof(double));
constexpr auto kMemoryBytes = std::size_t{kBlocks} * kStride * sizeof(double);

// Holds memory that nobody may touch while it is a device's.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes_((bytes + kPage - 1) / kPage * kPage) {
    data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(data_, MAP_FAILED);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { munmap(data_, bytes_); }

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  double* doubles() const { return static_cast<double*>(data_); }
  void protect(int protection) const { EXPECT_EQ(mprotect(data_, bytes_, protection), 0); }

  // Makes the driver say that it is memory of the device.
  void give_to_device(void* driver) const {
    const auto set = [driver](const char* name, std::uint64_t value) {
      *static_cast<std::uint64_t*>(dlsym(driver, name)) = value;
    };
    set("halocline_device_begin", reinterpret_cast<std::uintptr_t>(data_));
    set("halocline_device_bytes", bytes_);
  }

 private:
  std::size_t bytes_;
  void* data_;
};

TEST(Driver, ThatIsLoadedLaterIsNoticedBeforeItsMemoryIsRead) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(kBlocks, 1, kStride, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  auto* const known = committed_type(type);
  ASSERT_NE(known, nullptr);
  const Memory memory(kMemoryBytes), packed(kPackedBytes);
  for (int i = 0; i < kBlocks * kStride; ++i) memory.doubles()[i] = i;
  const auto pack = [&] {
    int position = 0;
    MPI_Pack(memory.data(), 1, type, packed.data(), kPackedBytes, &position, MPI_COMM_SELF);
    EXPECT_EQ(position, kPackedBytes);
  };
  const auto unpack = [&] {
    int position = 0;
    MPI_Unpack(packed.data(), kPackedBytes, &position, memory.data(), 1, type, MPI_COMM_SELF);
    EXPECT_EQ(position, kPackedBytes);
  };
  for (int use = 0; use < kUses; ++use) pack();
  ASSERT_NE(known->plan(), nullptr);

  void* const driver = dlopen(HALOCLINE_TEST_DRIVER, RTLD_LAZY);
  ASSERT_NE(driver, nullptr) << dlerror();
  std::this_thread::sleep_for(
      std::chrono::milliseconds(70));  // two periods: a real one starts longer
  packed.give_to_device(driver);
  packed.protect(PROT_NONE);
  // These calls would read the memory if they did not look for a driver.
  known->to_unpack(type, memory.data(), 1, packed.data(), kPackedBytes);
  known->to_pack(type, memory.data(), 1);
  packed.protect(PROT_READ | PROT_WRITE);
  std::memset(packed.data(), 0, kPackedBytes);
  pack();
  for (int i = 0; i < kBlocks; ++i) ASSERT_EQ(packed.doubles()[i], kStride * i);
  std::memset(memory.data(), 0, kMemoryBytes);
  unpack();
  for (int i = 0; i < kBlocks * kStride; ++i)
    ASSERT_EQ(memory.doubles()[i], i % kStride == 0 ? i : 0);

  memory.give_to_device(driver);
  memory.protect(PROT_NONE);
  for (const int count : {1, 1000}) {
    EXPECT_EQ(known->to_pack(type, memory.data(), count).plan, nullptr);
    EXPECT_EQ(known->to_unpack(type, memory.data(), count, packed.data(), 1 << 30).plan, nullptr);
  }
  memory.protect(PROT_READ | PROT_WRITE);
  MPI_Type_free(&type);

  // The next type was unknown before.
  memory.protect(PROT_NONE);
  MPI_Type_vector(kBlocks - 1, 1, kStride, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  for (int use = 0; use < kUses; ++use)
    ASSERT_EQ(committed_type(type)->to_pack(type, memory.data(), 1).plan, nullptr);
  MPI_Type_free(&type);
}

}  // namespace
}  // namespace halocline::interpose
