// SPDX-License-Identifier: BSD-3-Clause
// The emulated device, and the cache of what devices give.
#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "dtype/device/emulated_device.hpp"
#include "dtype/device/resource_cache.hpp"
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
