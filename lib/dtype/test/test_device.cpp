// SPDX-License-Identifier: BSD-3-Clause
// Tests the emulated device, and the cache of a device's resources.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "dtype/device/emulated_device.hpp"
#include "dtype/device/resource_cache.hpp"
#include "dtype/pack/device/emulated_packer.hpp"
#include "layout.hpp"

namespace halocline::dtype::test {

TEST(EmulatedDevice, KnowsItsMemory) {
  EmulatedDevice device;
  EXPECT_TRUE(device.properties().emulated);
  int here = 0;
  EXPECT_EQ(device.kind_of(&here), MemoryKind::host);
  EXPECT_EQ(device.kind_of(nullptr), MemoryKind::host);
  for (const auto kind : {MemoryKind::pinned, MemoryKind::device, MemoryKind::managed}) {
    auto* memory = static_cast<std::byte*>(device.allocate(kind, 1000));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0u);
    EXPECT_EQ(device.kind_of(memory), kind);
    EXPECT_EQ(device.kind_of(memory + 999), kind);
    EXPECT_EQ(host_can_address(kind), kind != MemoryKind::device);
    device.release(kind, memory);
    EXPECT_EQ(device.kind_of(memory), MemoryKind::host);
  }
  EXPECT_EQ(device.bytes(), 0u);
}

TEST(EmulatedDevice, KnowsWhatIsLeft) {
  EmulatedDevice device(4096);
  EXPECT_EQ(device.free_bytes(), 4096u);
  auto* memory = device.allocate(MemoryKind::device, 1000);
  EXPECT_EQ(device.free_bytes(), 3072u);
  EXPECT_THROW(device.allocate(MemoryKind::device, device.free_bytes() + 1), EnvironmentError);
  device.release(MemoryKind::device, memory);
  EXPECT_EQ(device.free_bytes(), 4096u);
}

// The emulated device works as late as a device may, so that a missing synchronization is seen.
TEST(EmulatedDevice, WorksWhenItIsWaitedFor) {
  EmulatedDevice device;
  const auto stream = device.create_stream(), other = device.create_stream();
  auto* const to = static_cast<int*>(device.allocate(MemoryKind::device, 4));
  auto* const from = static_cast<int*>(device.allocate(MemoryKind::pinned, 4));
  *to = 0, *from = 5;
  device.copy(to, from, 4, stream);
  device.synchronize(other);
  EXPECT_EQ(*to, 0);
  *from = 6;
  device.synchronize(stream);
  EXPECT_EQ(*to, 6);
  const int pageable = 7;
  device.copy(to, &pageable, 4, stream);
  EXPECT_EQ(*to, 7);
  device.release(MemoryKind::device, to);
  device.release(MemoryKind::pinned, from);
}

TEST(EmulatedDevice, PacksAndCopiesOnStreamsThatExist) {
  EmulatedDevice device;
  const auto stream = device.create_stream();
  const auto packer = device.make_packer(stream);
  const std::vector<int> numbers{1, 2, 3, 4, 5, 6};
  std::vector<int> packed(3), copy(3);
  packer->pack(plan_of("vector(3,1,2,int)"), numbers.data(), 1, packed.data());
  packer->fence();
  device.copy(copy.data(), packed.data(), 12, stream);
  device.launch_nothing(stream);
  device.synchronize(stream);
  EXPECT_EQ(copy, (std::vector<int>{1, 3, 5}));
  device.destroy_stream(stream);
  EXPECT_THROW(device.launch_nothing(stream), EnvironmentError);
  EXPECT_THROW(device.synchronize(stream), EnvironmentError);
  EXPECT_THROW(device.copy(copy.data(), packed.data(), 12, stream), EnvironmentError);
}

namespace {

// Holds a stream with a packer, and memory for numbers.
struct Stage {
  EmulatedDevice device;
  Device::Stream stream = device.create_stream();
  std::unique_ptr<Packer> packer = device.make_packer(stream);
  std::vector<int> memory = std::vector<int>(5000), packed = std::vector<int>(2000),
                   copy = std::vector<int>(2000);

  // Returns a plan that packs every second number, by `jobs` jobs. The table of hundreds of jobs
  // does not travel with the launch.
  FusedPlan plan(int jobs) {
    std::vector<PackJob> all;
    for (int job = 0; job < jobs; ++job)
      all.push_back({plan_of("vector(" + std::to_string(1 + job % 3) + ",1,2,int)"),
                     memory.data() + 6 * job, 1});
    return FusedPlan(all);
  }
  // Returns the bytes that EmulatedPacker packs.
  std::vector<int> expected(const FusedPlan& plan) const {
    std::vector<int> out(copy.size());
    EmulatedPacker().pack(plan, out.data());
    return out;
  }
  void fill(int first) { std::iota(memory.begin(), memory.end(), first); }
};

}  // namespace

TEST(EmulatedDevice, ReplaysWhatItRecorded) {
  for (const int jobs : {1, 700}) {
    Stage stage;
    const auto plan = stage.plan(jobs);
    const auto bytes = static_cast<std::size_t>(plan.packed_bytes());
    const auto work = [&] {
      stage.packer->pack(plan, stage.packed.data());
      stage.device.copy(stage.copy.data(), stage.packed.data(), bytes, stage.stream);
    };
    stage.fill(1000);
    work();
    EXPECT_EQ(stage.copy, stage.expected(plan));
    stage.fill(3000);
    const auto recording = stage.device.record(stage.stream, work);
    EXPECT_NE(stage.copy, stage.expected(plan)) << "recording does nothing";
    for (const int first : {4000, 5000}) {
      stage.fill(first);
      recording->replay();
      stage.device.synchronize(stage.stream);
      EXPECT_EQ(stage.copy, stage.expected(plan));
    }
    EXPECT_EQ(stage.device.replays(), 2u);
  }
}

TEST(EmulatedDevice, RefusesWhatARecordingMustNotDo) {
  Stage stage;
  auto& device = stage.device;
  const auto small = stage.plan(1), large = stage.plan(700);
  const auto refused = [&](const std::function<void()>& work) {
    EXPECT_THROW(device.record(stage.stream, work), EnvironmentError);
    // The refused work has left nothing behind.
    stage.fill(7);
    stage.packer->pack(small, stage.packed.data());
    stage.packer->fence();
    EXPECT_EQ(stage.packed.front(), 7);
  };
  refused([&] { device.synchronize(stage.stream); });
  refused([&] { stage.packer->fence(); });
  refused([&] { device.allocate(MemoryKind::device, 1); });
  refused([&] { device.record(device.create_stream(), [] {}); });
  refused([&] { stage.packer->pack(large, stage.packed.data()); });  // the plan uploads its table
  refused([&] {
    stage.packer->pack(small, stage.packed.data());
    throw EnvironmentError("of the work");
  });
  stage.packer->prepare(large);
  alignas(16) std::array<int, 2000> packed{};
  device.record(stage.stream, [&] { stage.packer->pack(large, packed.data()); })->replay();
  device.synchronize(stage.stream);
  EXPECT_EQ(packed.front(), 7);
}

TEST(EmulatedDevice, OthersGoOnWhileAThreadRecords) {
  Stage stage;
  auto& device = stage.device;
  const auto recording = device.record(stage.stream, [&] {
    std::thread([&] {
      const auto other = device.create_stream();
      device.release(MemoryKind::device, device.allocate(MemoryKind::device, 1));
      device.copy(stage.copy.data(), stage.memory.data(), 4, other);
      device.synchronize(other);
    }).join();
  });
  stage.fill(1);
  recording->replay();
  EXPECT_EQ(stage.copy.front(), 0) << "only what the stream was given";
}

TEST(ResourceCache, KeepsBuffersForTheNext) {
  EmulatedDevice device;
  ResourceCache cache(device);
  EXPECT_EQ(device.bytes(), 0u);
  EXPECT_EQ(cache.buffer(MemoryKind::device, 0).data(), nullptr);
  const std::byte* first = nullptr;
  {
    const auto buffer = cache.buffer(MemoryKind::device, 1000);
    first = buffer.data();
    const auto other = cache.buffer(MemoryKind::device, 1000);
    EXPECT_NE(other.data(), first);
    EXPECT_EQ(cache.kept_bytes(), 0u);
  }
  EXPECT_EQ(cache.kept_bytes(), 2000u);
  const auto allocated = device.bytes();
  {
    const auto smaller = cache.buffer(MemoryKind::device, 600);
    const auto pinned = cache.buffer(MemoryKind::pinned, 600);
    EXPECT_EQ(device.kind_of(smaller.data()), MemoryKind::device);
    EXPECT_EQ(device.kind_of(pinned.data()), MemoryKind::pinned);
    const auto much_smaller = cache.buffer(MemoryKind::device, 100);
    EXPECT_GT(device.bytes(), allocated) << "one twice as large would be wasted";
    EXPECT_EQ(cache.kept_bytes(), 1000u);
  }
  cache.release_kept();
  EXPECT_EQ(device.bytes(), 0u);
}

TEST(ResourceCache, HasALimit) {
  EmulatedDevice device;
  ResourceCache cache(device, 1500);
  {
    const auto a = cache.buffer(MemoryKind::device, 1000),
               b = cache.buffer(MemoryKind::device, 1000);
  }
  EXPECT_EQ(cache.kept_bytes(), 1000u);
  EXPECT_EQ(device.bytes(), 1024u);
}

TEST(ResourceCache, GivesUpWhatItKeepsWhereMemoryIsShort) {
  EmulatedDevice device(4096);
  ResourceCache cache(device);
  static_cast<void>(cache.buffer(MemoryKind::device, 3000));
  EXPECT_EQ(cache.kept_bytes(), 3000u);
  {
    const auto pinned = cache.buffer(MemoryKind::pinned, 3000);
    EXPECT_NE(pinned.data(), nullptr);
    EXPECT_EQ(cache.kept_bytes(), 0u);
    EXPECT_THROW(static_cast<void>(cache.buffer(MemoryKind::device, 3000)), EnvironmentError);
  }
}

TEST(ResourceCache, StreamsAreUsedAgain) {
  EmulatedDevice device;
  {
    ResourceCache cache(device);
    Device::Stream first = nullptr;
    {
      const auto stream = cache.stream();
      first = stream.get();
      EXPECT_NE(cache.stream().get(), first);
    }
    EXPECT_EQ(device.streams(), 2u);
    auto a = cache.stream(), b = std::move(a);
    EXPECT_EQ(device.streams(), 2u);
    device.synchronize(b.get());
  }
  EXPECT_EQ(device.streams(), 0u);
}

// One process is enough: two addresses then lead to the same memory.
TEST(EmulatedDevice, SharesItsMemory) {
  EmulatedDevice device;
  const std::size_t bytes = 10000;
  auto* const memory = static_cast<char*>(device.allocate(MemoryKind::device, bytes));
  memory[0] = 1, memory[bytes - 1] = 2;
  const auto first = device.share(memory), last = device.share(memory + bytes - 1);
  ASSERT_TRUE(first && last);
  EXPECT_EQ(first->allocation, last->allocation);
  EXPECT_EQ(last->offset - first->offset, 9999);
  EXPECT_GE(first->bytes, 10000);
  EXPECT_EQ(first->bytes - last->bytes, 9999);
  auto* const opened = static_cast<char*>(device.open(*first));
  ASSERT_NE(opened, nullptr);
  EXPECT_NE(opened + first->offset, memory);
  EXPECT_EQ(opened[first->offset], 1);
  EXPECT_EQ(opened[last->offset], 2);
  opened[first->offset + 5] = 3;
  EXPECT_EQ(memory[5], 3);
  device.close(opened);

  auto* const other = device.allocate(MemoryKind::device, 1);
  EXPECT_NE(device.share(other)->allocation, first->allocation);
  auto* const pinned = device.allocate(MemoryKind::pinned, 100);
  EXPECT_FALSE(device.share(pinned));
  EXPECT_FALSE(device.share(&device));
  auto gone = *first;
  gone.allocation.fill(std::byte{0x7F});
  EXPECT_EQ(device.open(gone), nullptr);
  for (auto* const each : {static_cast<void*>(memory), other})
    device.release(MemoryKind::device, each);
  device.release(MemoryKind::pinned, pinned);
  EXPECT_FALSE(device.share(memory));
}

// The system tells which addresses may be read, without a crash.
TEST(EmulatedDevice, LiesBetweenPagesThatNobodyCanTouch) {
  EmulatedDevice device;
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  auto* const memory = static_cast<char*>(device.allocate(MemoryKind::device, 5000));
  const auto readable = [&](const char* address) { return write(ends[1], address, 1) == 1; };
  const auto end = memory + (5000 + 255) / 256 * 256;
  EXPECT_TRUE(readable(memory));
  EXPECT_TRUE(readable(end - 1));
  EXPECT_FALSE(readable(end));
  EXPECT_FALSE(readable(end - 2 * 4096 - 1));
  device.release(MemoryKind::device, memory);
  for (const int file : ends) close(file);
}

TEST(MemoryKind, IsAsADriverSaysOnceItIsLoaded) {
  // A real driver, which an MPI that knows CUDA loads, cannot be unloaded. The test needs a machine
  // without one, such as CI.
  kind_of_memory(nullptr);
  if (has_device_memory()) GTEST_SKIP() << "there is a driver already";
  const auto kind_at = [](std::uintptr_t address) {
    return kind_of_memory(reinterpret_cast<const void*>(address));
  };
  EXPECT_EQ(kind_at(2000), MemoryKind::host);
  EXPECT_FALSE(has_device_memory());
  // The driver stays loaded, since its symbols are kept from now on.
  ASSERT_NE(dlopen(HALOCLINE_TEST_DRIVER, RTLD_LAZY), nullptr) << dlerror();
  std::this_thread::sleep_for(
      std::chrono::milliseconds(70));  // two periods: a real one starts longer
  EXPECT_EQ(kind_at(1000), MemoryKind::pinned);
  EXPECT_EQ(kind_at(2000), MemoryKind::device);
  EXPECT_EQ(kind_at(3000), MemoryKind::managed);
  EXPECT_EQ(kind_at(4000), MemoryKind::host);
  EXPECT_TRUE(has_device_memory());
}

TEST(ResourceCache, ServesManyThreads) {
  EmulatedDevice device;
  {
    ResourceCache cache(device);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&cache, t] {
        for (int i = 0; i < 300; ++i) {
          const auto buffer =
              cache.buffer(MemoryKind::device, static_cast<std::size_t>(100 + i % 7 * 100));
          const auto stream = cache.stream();
          *buffer.data() = static_cast<std::byte>(t);
          EXPECT_EQ(*buffer.data(), static_cast<std::byte>(t));
        }
      });
    for (auto& thread : threads) thread.join();
    EXPECT_LE(device.streams(), 4u);
  }
  EXPECT_EQ(device.bytes(), 0u);
}

}  // namespace halocline::dtype::test
