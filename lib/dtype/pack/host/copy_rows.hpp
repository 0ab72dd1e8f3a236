// SPDX-License-Identifier: BSD-3-Clause
// Copies a row: the innermost loop over runs. Its kind is chosen once per nest. Internal to the
// sources here.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "dtype/pack/host/copy_widths.hpp"

namespace halocline::dtype::host {

// Copies kRuns runs at once that follow each other in the packed stream. Run i is at memory_of(i).
// The gain is fewer and longer stores, where the packed side is written. kRuns is 0 if there is no
// gain.
template <CopyDirection kDirection, class Width>
struct Batch {
  static constexpr std::int64_t kRuns = 0;
};

template <CopyDirection kDirection, class Element>
struct BatchOfElements {
  static constexpr std::int64_t kRuns = 8;

  template <class MemoryOf>
  [[gnu::always_inline]] static void copy(MemoryOf memory_of, Address packed) {
    constexpr auto kLanes = kMaxChunk / sizeof(Element);
    for (std::size_t i = 0; i < kRuns; i += kLanes)
      copy([&](std::size_t lane) { return memory_of(i + lane); }, packed + i * sizeof(Element),
           std::make_index_sequence<kLanes>());
  }

 private:
  using Vector [[gnu::vector_size(kMaxChunk)]] = Element;

  template <class MemoryOf, std::size_t... kLane>
  [[gnu::always_inline]] static void copy(MemoryOf memory_of, Address packed,
                                          std::index_sequence<kLane...>) {
    if constexpr (kDirection == CopyDirection::pack)
      store(packed, Vector{loaded<Element>(memory_of(kLane))...});
    else
      (copy_run<kDirection>(Fixed<sizeof(Element)>{}, memory_of(kLane),
                            packed + kLane * sizeof(Element)),
       ...);
  }
};
template <CopyDirection kDirection>
struct Batch<kDirection, Fixed<4>> : BatchOfElements<kDirection, std::uint32_t> {};
template <CopyDirection kDirection>
struct Batch<kDirection, Fixed<8>> : BatchOfElements<kDirection, std::uint64_t> {};

// Stores four runs of 12 bytes as three times 16 bytes.
template <>
struct Batch<CopyDirection::pack, Fixed<12>> {
  static constexpr std::int64_t kRuns = std::endian::native == std::endian::little ? 4 : 0;

  template <class MemoryOf>
  [[gnu::always_inline]] static void copy(MemoryOf memory_of, Address packed) {
    using Chunk = ChunkOf<16>::Type;
    const auto joined = [](Address low, Address high) {
      return loaded<std::uint32_t>(low) | std::uint64_t{loaded<std::uint32_t>(high)} << 32;
    };
    const Address at[] = {memory_of(0), memory_of(1), memory_of(2), memory_of(3)};
    const Chunk first{loaded<std::uint64_t>(at[0]), joined(at[0] + 8, at[1])},
        second{loaded<std::uint64_t>(at[1] + 4), loaded<std::uint64_t>(at[2])},
        third{joined(at[2] + 8, at[3]), loaded<std::uint64_t>(at[3] + 4)};
    store(packed, first);
    store(packed + 16, second);
    store(packed + 32, third);
  }
};

// Stores two chunks, one behind the other, by one store of 32 bytes if there is one.
[[gnu::always_inline]] inline void store_both(Address to, const ChunkOf<16>::Type& low,
                                              const ChunkOf<16>::Type& high) {
#if defined(__AVX__) && __has_builtin(__builtin_shufflevector)
  store(to, __builtin_shufflevector(low, high, 0, 1, 2, 3));
#else
  store(to, low);
  store(to + 16, high);
#endif
}

// Stores four runs of 24 bytes as three times 32 bytes.
template <>
struct Batch<CopyDirection::pack, Fixed<24>> {
  static constexpr std::int64_t kRuns = 4;

  template <class MemoryOf>
  [[gnu::always_inline]] static void copy(MemoryOf memory_of, Address packed) {
    using Half = ChunkOf<16>::Type;
    const Address at[] = {memory_of(0), memory_of(1), memory_of(2), memory_of(3)};
    const auto begin0 = loaded<Half>(at[0]), end1 = loaded<Half>(at[1] + 8),
               begin2 = loaded<Half>(at[2]), end3 = loaded<Half>(at[3] + 8);
    const Half mixed1{loaded<std::uint64_t>(at[0] + 16), loaded<std::uint64_t>(at[1])};
    const Half mixed3{loaded<std::uint64_t>(at[2] + 16), loaded<std::uint64_t>(at[3])};
    store_both(packed, begin0, mixed1);
    store_both(packed + 32, end1, begin2);
    store_both(packed + 64, mixed3, end3);
  }
};

// Hides the origin of a value from the compiler, which would undo the arithmetic.
[[gnu::always_inline]] inline Address opaque(Address value) {
  asm("" : "+r"(value));
  return value;
}

// Copies a row of any strides. Four steps at once; no address waits for the address of the step
// before.
template <CopyDirection kDirection, class Width>
struct StridedRow {
  Width width;
  static StridedRow of(std::int64_t run) { return {width_of<Width>(run)}; }

  [[gnu::always_inline]] void operator()(const LoopLevel& level, Address memory,
                                         Address packed) const {
    const auto [count, stride, packed_stride] = level;
    if (packed_stride == width.size())
      consecutive(width, count, static_cast<Address>(stride), memory, packed);
    else
      steps(width, count, static_cast<Address>(stride), static_cast<Address>(packed_stride), memory,
            packed);
  }

 private:
  [[gnu::always_inline]] static void steps(Width width, std::int64_t count, Address s, Address q,
                                           Address memory, Address packed) {
    if constexpr (std::is_same_v<Width, Streamed>) {
      for (; count > 0; --count, memory += s, packed += q) width.copy(packed, memory, memory + s);
      return;
    }
    if constexpr (std::is_same_v<Width, Long> || std::is_same_v<Width, Aligned>) {
      for (; count > 0; --count, memory += s, packed += q)
        copy_run<kDirection>(width, memory, packed);
      return;
    }
    const Address s3 = opaque(3 * s);
    for (; count >= 4; count -= 4, memory += 4 * s, packed += 4 * q) {
      copy_run<kDirection>(width, memory, packed);
      copy_run<kDirection>(width, memory + s, packed + q);
      copy_run<kDirection>(width, memory + 2 * s, packed + 2 * q);
      copy_run<kDirection>(width, memory + s3, packed + 3 * q);
    }
    if (count >= 2) {
      copy_run<kDirection>(width, memory, packed);
      copy_run<kDirection>(width, memory + s, packed + q);
      memory += 2 * s, packed += 2 * q;
    }
    if (count % 2 == 1) copy_run<kDirection>(width, memory, packed);
  }
  [[gnu::always_inline]] static void consecutive(Width width, std::int64_t count, Address s,
                                                 Address memory, Address packed) {
    const auto q = static_cast<Address>(width.size());
    using B = Batch<kDirection, Width>;
    if constexpr (B::kRuns > 0) {
      const Address s3 = opaque(3 * s);
      for (; count >= B::kRuns; count -= B::kRuns) {
        const auto fourth = memory + 4 * s;
        B::copy(
            [&](std::size_t i) {
              const Address step[] = {0, s, 2 * s, s3};
              return (i < 4 ? memory : fourth) + step[i % 4];
            },
            packed);
        memory += B::kRuns * s, packed += B::kRuns * q;
      }
    }
    steps(width, count, s, q, memory, packed);
  }
};

// Copies a row of a few steps, as in a halo. A loop would cost more than these steps.
template <CopyDirection kDirection, class Width, std::size_t kCount>
struct ShortRow {
  static ShortRow of(std::int64_t) { return {}; }

  [[gnu::always_inline]] void operator()(const LoopLevel& level, Address memory,
                                         Address packed) const {
    const auto s = static_cast<Address>(level.stride),
               q = static_cast<Address>(level.packed_stride);
#pragma GCC unroll 4
    for (Address i = 0; i < kCount; ++i)
      copy_run<kDirection>(Width{}, memory + i * s, packed + i * q);
  }
};

// Copies a run and those of its kTwins twins at each step. kCount is the number of steps; 0 means
// any number.
//
// In a halo, steps are often a page apart, and the prefetchers of the hardware come too late.
// Prefetching gains 15 % for x faces of 256^3 points that are in no cache. It runs past the last
// row, where the next plane usually is.
template <class Width, std::size_t kTwins, std::int64_t kCount = 0>
struct TwinRow {
  TwinDistances apart;

  [[gnu::always_inline]] void operator()(const LoopLevel& level, Address memory,
                                         Address packed) const {
    const auto s = static_cast<Address>(level.stride),
               q = static_cast<Address>(level.packed_stride);
    const auto count = kCount > 0 ? kCount : level.count;
    constexpr std::int64_t kAhead = 64, kMany = 32;
    if (count < kMany) {
#pragma GCC unroll 4
      for (std::int64_t i = 0; i < count; ++i, memory += s, packed += q) step(memory, packed);
      return;
    }
    const auto ahead = opaque(kAhead * s);
    for (std::int64_t i = 0; i < count; ++i, memory += s, packed += q) {
      prefetch(memory + ahead);
#pragma GCC unroll 4
      for (std::size_t k = 0; k < kTwins; ++k) prefetch(memory + ahead + apart.memory[k]);
      step(memory, packed);
    }
  }

 private:
  // Into the second cache, which has room for many lines.
  [[gnu::always_inline]] static void prefetch(Address address) {
    __builtin_prefetch(reinterpret_cast<const void*>(address), 0, 2);
  }
  [[gnu::always_inline]] void step(Address memory, Address packed) const {
    Width::copy(packed, memory);
#pragma GCC unroll 4
    for (std::size_t k = 0; k < kTwins; ++k)
      Width::copy(packed + apart.packed[k], memory + apart.memory[k]);
  }
};

// Copies every kStep-th element of a basic type, in code like a loop by hand. When packing, the
// compiler stores vectors. When unpacking, the loads and stores of batches took up to 1.25 times as
// long for elements two apart.
template <CopyDirection kDirection, class Element, std::int64_t kStep>
struct ElementRow {
  static ElementRow of(std::int64_t) { return {}; }

  [[gnu::always_inline]] void operator()(const LoopLevel& level, Address memory,
                                         Address packed) const {
    constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Element));
    constexpr bool kPacks = kDirection == CopyDirection::pack;
    const auto* __restrict const from =
        reinterpret_cast<const std::byte*>(kPacks ? memory : packed);
    auto* __restrict const to = reinterpret_cast<std::byte*>(kPacks ? packed : memory);
    const auto count = level.count;
    for (std::int64_t i = 0; i < count; ++i) {
      Element element;
      std::memcpy(&element, from + i * (kPacks ? kStep : 1) * kBytes, sizeof element);
      std::memcpy(to + i * (kPacks ? 1 : kStep) * kBytes, &element, sizeof element);
    }
  }
};

}  // namespace halocline::dtype::host
