// SPDX-License-Identifier: BSD-3-Clause
// Copies loops over runs on the host: every packer of the host ends here. Internal to the sources
// here.
//
// Best peer: Open MPI calls memcpy for every block, and MPICH copies one basic element at a time.
// Here the width of a run is a constant of the loop that copies it. Loops whose shortest strides
// are in different levels run in tiles.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "dtype/pack/host/nest.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::dtype::host {

using detail::kLineBytes;

// Names the type that moves kBytes bytes through one register. Vectors are filled and written by
// reference: without AVX, vectors of 32 bytes have no ABI for passing by value.
template <std::size_t kBytes>
struct ChunkOf {
  using Type [[gnu::vector_size(kBytes)]] = std::uint64_t;
};
template <>
struct ChunkOf<1> {
  using Type = std::uint8_t;
};
template <>
struct ChunkOf<2> {
  using Type = std::uint16_t;
};
template <>
struct ChunkOf<4> {
  using Type = std::uint32_t;
};
template <>
struct ChunkOf<8> {
  using Type = std::uint64_t;
};
inline constexpr std::size_t kMaxChunk = 32;

template <class Chunk>
void load(Chunk& value, Address address) {
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
}
template <class Chunk>
void store(Address address, const Chunk& value) {
  std::memcpy(reinterpret_cast<void*>(address), &value, sizeof value);
}
// Returns a chunk by value: only for chunks that have an ABI.
template <class Chunk>
Chunk loaded(Address address) {
  Chunk chunk;
  load(chunk, address);
  return chunk;
}

// Holds kBytes bytes in as few chunks as possible.
template <std::size_t kBytes>
struct Chunks {
  static constexpr auto kFirst = std::bit_floor(std::min(kBytes, kMaxChunk));
  typename ChunkOf<kFirst>::Type first;
  Chunks<kBytes - kFirst> others;

  void load_from(Address from) {
    load(first, from);
    others.load_from(from + kFirst);
  }
  void store_to(Address to) const {
    store(to, first);
    others.store_to(to + kFirst);
  }
};
template <>
struct Chunks<0> {
  void load_from(Address) {}
  void store_to(Address) const {}
};

// Widths of a run: the number of bytes (kBytes, if the compiler knows it), and a copy that touches
// no other byte. OfTiles is the width that copies such runs in tiles. It is void for runs of a
// cache line or more, which never run in tiles.
template <std::size_t kWidth>
struct Fixed {
  using OfTiles = std::conditional_t < kWidth<kLineBytes, Fixed, void>;
  static constexpr std::int64_t kBytes = kWidth;
  static constexpr std::int64_t size() { return kBytes; }
  // All loads come before the first store: for the compiler, the store may change the memory of a
  // load.
  static void copy(Address to, Address from) {
    Chunks<kWidth> chunks;
    chunks.load_from(from);
    chunks.store_to(to);
  }
};
// Copies kHead bytes and at most kTail more, as two chunks that may overlap.
template <std::size_t kHead, std::size_t kTail>
struct Joined {
  using OfTiles = Joined<kHead, kHead>;  // one for all tails: runs of odd widths are rare in tiles
  static constexpr std::int64_t kBytes = 0;
  std::int64_t bytes;
  std::int64_t size() const { return bytes; }
  void copy(Address to, Address from) const {
    const auto at = static_cast<Address>(bytes) - kTail;
    typename ChunkOf<kHead>::Type head;
    typename ChunkOf<kTail>::Type tail;
    load(head, from);
    load(tail, from + at);
    store(to, head);
    store(to + at, tail);
  }
};
// Copies 32 bytes or more, four chunks at a time. The last chunk may overlap the one before.
struct Wide {
  using OfTiles = void;
  static constexpr std::int64_t kBytes = 0;
  std::int64_t bytes;
  std::int64_t size() const { return bytes; }
  void copy(Address to, Address from) const {
    auto left = static_cast<Address>(bytes);
    for (; left >= 4 * kMaxChunk; left -= 4 * kMaxChunk) {
      Fixed<4 * kMaxChunk>::copy(to, from);
      from += 4 * kMaxChunk, to += 4 * kMaxChunk;
    }
    for (; left >= kMaxChunk; left -= kMaxChunk, from += kMaxChunk, to += kMaxChunk)
      Fixed<kMaxChunk>::copy(to, from);
    if (left > 0) Fixed<kMaxChunk>::copy(to + left - kMaxChunk, from + left - kMaxChunk);
  }
};
// Copies 32 bytes or more, one chunk at a time. The last chunk may overlap the one before.
struct Overlapping {
  static constexpr std::int64_t kBytes = 0;
  std::int64_t bytes;
  std::int64_t size() const { return bytes; }
  void copy(Address to, Address from) const {
    const auto last = from + static_cast<Address>(bytes) - kMaxChunk;
    const auto last_to = to + static_cast<Address>(bytes) - kMaxChunk;
    for (; from < last; from += kMaxChunk, to += kMaxChunk) Fixed<kMaxChunk>::copy(to, from);
    Fixed<kMaxChunk>::copy(last_to, last);
  }
};
// From this width on, the C library's memcpy is faster in a loop over runs. That was measured for
// every width by benchmark group `widths`, which e484cbb was the last to have.
inline constexpr std::int64_t kMemcpyFrom = 512;
struct Long {
  using OfTiles = void;
  static constexpr std::int64_t kBytes = 0;
  std::int64_t bytes;
  std::int64_t size() const { return bytes; }
  void copy(Address to, Address from) const {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from),
                static_cast<std::size_t>(bytes));
  }
};

// Calls function(width) for a run of kHead to 2 * kHead bytes, with the shortest tail that
// suffices.
template <std::size_t kHead, std::size_t kTail = 1, class Function>
void with_tail(std::int64_t run, const Function& function) {
  if constexpr (kTail < kHead) {
    if (run > static_cast<std::int64_t>(kHead + kTail))
      return with_tail<kHead, 2 * kTail>(run, function);
  }
  function(Joined<kHead, kTail>{run});
}

template <class Function>
void with_width(std::int64_t run, const Function& function) {
  switch (run) {
    case 1:
      return function(Fixed<1>{});
    case 2:
      return function(Fixed<2>{});
    case 4:
      return function(Fixed<4>{});
    case 8:
      return function(Fixed<8>{});
    case 12:
      return function(Fixed<12>{});
    case 16:
      return function(Fixed<16>{});
    case 24:
      return function(Fixed<24>{});
    case 32:
      return function(Fixed<32>{});
    case 40:
      return function(Fixed<40>{});
    case 48:
      return function(Fixed<48>{});
    case 64:
      return function(Fixed<64>{});
    default:
      break;
  }
  if (run < 4) return function(Joined<2, 1>{run});
  if (run < 8) return with_tail<4>(run, function);
  if (run < 16) return with_tail<8>(run, function);
  if (run < 32) return with_tail<16>(run, function);
  if (run < 64) return with_tail<32>(run, function);
  if (run < kMemcpyFrom) return function(Wide{run});
  return function(Long{run});
}

template <Direction kDirection, class Width>
[[gnu::always_inline]] inline void copy_run(Width width, Address memory, Address packed) {
  if constexpr (kDirection == Direction::pack)
    width.copy(packed, memory);
  else
    width.copy(memory, packed);
}

template <class Width>
Width width_of(std::int64_t run) {
  if constexpr (Width::kBytes > 0)
    return {};
  else
    return {run};
}

// ---- Rows: one loop; its kind is chosen once per nest ----

// Copies kRuns runs at once that follow each other in the packed stream. Run i is at memory_of(i).
// The gain is fewer and longer stores, where the packed side is written. kRuns is 0 if there is no
// gain. The batch also writes to the packed bytes of kSpare runs behind it, which must exist.
template <Direction kDirection, class Width>
struct Batch {
  static constexpr std::int64_t kRuns = 0, kSpare = 0;
};

template <Direction kDirection, class Element>
struct BatchOfElements {
  static constexpr std::int64_t kRuns = 8, kSpare = 0;

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
    if constexpr (kDirection == Direction::pack)
      store(packed, Vector{loaded<Element>(memory_of(kLane))...});
    else
      (copy_run<kDirection>(Fixed<sizeof(Element)>{}, memory_of(kLane),
                            packed + kLane * sizeof(Element)),
       ...);
  }
};
template <Direction kDirection>
struct Batch<kDirection, Fixed<4>> : BatchOfElements<kDirection, std::uint32_t> {};
template <Direction kDirection>
struct Batch<kDirection, Fixed<8>> : BatchOfElements<kDirection, std::uint64_t> {};

// Stores 16 bytes for each run of 12. The next store overwrites the surplus: in little-endian
// order, it is the upper half of an element.
template <>
struct Batch<Direction::pack, Fixed<12>> {
  static constexpr std::int64_t kRuns = std::endian::native == std::endian::little ? 4 : 0,
                                kSpare = 1;

  template <class MemoryOf>
  [[gnu::always_inline]] static void copy(MemoryOf memory_of, Address packed) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kRuns; ++i)
      store(packed + 12 * i, ChunkOf<16>::Type{loaded<std::uint64_t>(memory_of(i)),
                                               loaded<std::uint32_t>(memory_of(i) + 8)});
  }
};

// Stores two runs of 24 bytes as three times 16 bytes.
template <>
struct Batch<Direction::pack, Fixed<24>> {
  static constexpr std::int64_t kRuns = 2, kSpare = 0;

  template <class MemoryOf>
  [[gnu::always_inline]] static void copy(MemoryOf memory_of, Address packed) {
    const auto first = memory_of(0), second = memory_of(1);
    const auto begin = loaded<ChunkOf<16>::Type>(first),
               end = loaded<ChunkOf<16>::Type>(second + 8);
    store(packed, begin);
    store(packed + 16,
          ChunkOf<16>::Type{loaded<std::uint64_t>(first + 16), loaded<std::uint64_t>(second)});
    store(packed + 32, end);
  }
};

// Hides the origin of a value from the compiler, which would undo the arithmetic.
[[gnu::always_inline]] inline Address opaque(Address value) {
  asm("" : "+r"(value));
  return value;
}

// Copies a row of any strides. Four steps at once; no address waits for the address of the step
// before.
template <Direction kDirection, class Width>
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
    if constexpr (std::is_same_v<Width, Long>) {
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
      for (; count >= B::kRuns + B::kSpare; count -= B::kRuns) {
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
template <Direction kDirection, class Width, std::size_t kCount>
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

// Copies two runs at each step, a fixed distance apart. kCount is the number of steps; 0 means any
// number.
//
// In a halo, steps are often a page apart, and the prefetchers of the hardware come too late.
// Prefetching gains 15 % for x faces of 256^3 points that are in no cache. It runs past the last
// row, where the next plane usually is.
template <class Width, std::int64_t kCount = 0>
struct TwinRow {
  Address memory_apart, packed_apart;

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
      prefetch(memory + ahead + memory_apart);
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
    Width::copy(packed + packed_apart, memory + memory_apart);
  }
};

// Copies every kStep-th element of a basic type, in code like a loop by hand. When packing, the
// compiler stores vectors. When unpacking, the loads and stores of batches took up to 1.25 times as
// long for elements two apart.
template <Direction kDirection, class Element, std::int64_t kStep>
struct ElementRow {
  static ElementRow of(std::int64_t) { return {}; }

  [[gnu::always_inline]] void operator()(const LoopLevel& level, Address memory,
                                         Address packed) const {
    constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Element));
    constexpr bool kPacks = kDirection == Direction::pack;
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

// ---- Tiles: level x has the short stride in memory, level y the one in the packed stream ----

// Is a rectangle of a plane, in steps of x and y.
struct Rectangle {
  std::int64_t x, last_x, y, last_y;
};

template <Direction kDirection, class Width>
void copy_tile(Width width, const LoopLevel& x, const LoopLevel& y, const Rectangle& r,
               Address memory, Address packed) {
  const StridedRow<kDirection, Width> row{width};
  for (auto i = r.x; i < r.last_x; ++i)
    row({r.last_y - r.y, y.stride, y.packed_stride},
        memory + static_cast<Address>(i * x.stride + r.y * y.stride),
        packed + static_cast<Address>(i * x.packed_stride + r.y * y.packed_stride));
}

// Transposes square tiles of elements of a few bytes in registers.
template <std::int64_t kBytes>
struct Transposer {
  static constexpr std::int64_t kSide = 0;
};

template <>
struct Transposer<4> {
  static constexpr std::int64_t kSide = 8;
  static void run(Address from, Address from_row, Address to, Address to_row) {
    using V [[gnu::vector_size(32)]] = std::uint32_t;
    V a[8], b[8];
    for (Address i = 0; i < 8; ++i) load(a[i], from + i * from_row);
    for (int i = 0; i < 8; i += 2) {
      b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
      b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; i += 4)
      for (int j = 0; j < 2; ++j) {
        a[i + 2 * j] = __builtin_shufflevector(b[i + j], b[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        a[i + 2 * j + 1] =
            __builtin_shufflevector(b[i + j], b[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
      }
    for (Address i = 0; i < 4; ++i) {
      store(to + i * to_row, __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11));
      store(to + (i + 4) * to_row,
            __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15));
    }
  }
};

template <>
struct Transposer<8> {
  static constexpr std::int64_t kSide = 4;
  static void run(Address from, Address from_row, Address to, Address to_row) {
    using V [[gnu::vector_size(32)]] = std::uint64_t;
    V r0, r1, r2, r3;
    load(r0, from);
    load(r1, from + from_row);
    load(r2, from + 2 * from_row);
    load(r3, from + 3 * from_row);
    const auto even01 = __builtin_shufflevector(r0, r1, 0, 4, 2, 6),
               odd01 = __builtin_shufflevector(r0, r1, 1, 5, 3, 7),
               even23 = __builtin_shufflevector(r2, r3, 0, 4, 2, 6),
               odd23 = __builtin_shufflevector(r2, r3, 1, 5, 3, 7);
    store(to, __builtin_shufflevector(even01, even23, 0, 1, 4, 5));
    store(to + to_row, __builtin_shufflevector(odd01, odd23, 0, 1, 4, 5));
    store(to + 2 * to_row, __builtin_shufflevector(even01, even23, 2, 3, 6, 7));
    store(to + 3 * to_row, __builtin_shufflevector(odd01, odd23, 2, 3, 6, 7));
  }
};

template <>
struct Transposer<16> {
  static constexpr std::int64_t kSide = 2;
  static void run(Address from, Address from_row, Address to, Address to_row) {
    using V [[gnu::vector_size(32)]] = std::uint64_t;
    V r0, r1;
    load(r0, from);
    load(r1, from + from_row);
    store(to, __builtin_shufflevector(r0, r1, 0, 1, 4, 5));
    store(to + to_row, __builtin_shufflevector(r0, r1, 2, 3, 6, 7));
  }
};

// Copies one tile of whole cache lines on both sides, in registers.
template <Direction kDirection, std::int64_t kBytes>
void transpose_lines(const LoopLevel& x, const LoopLevel& y, Address memory, Address packed) {
  constexpr auto kSide = Transposer<kBytes>::kSide;
  constexpr auto kLine = kLineBytes / kBytes;
  for (std::int64_t i = 0; i < kLine; i += kSide)
    for (std::int64_t j = 0; j < kLine; j += kSide) {
      const auto m = memory + static_cast<Address>(i * kBytes + j * y.stride);
      const auto p = packed + static_cast<Address>(i * x.packed_stride + j * kBytes);
      if constexpr (kDirection == Direction::pack)
        Transposer<kBytes>::run(m, static_cast<Address>(y.stride), p,
                                static_cast<Address>(x.packed_stride));
      else
        Transposer<kBytes>::run(p, static_cast<Address>(x.packed_stride), m,
                                static_cast<Address>(y.stride));
    }
}

// Copies two loops in tiles. Tiles follow the rows of the side that is written, so that few pages
// are open for writing. With a third loop, one row of tiles of the packed side runs for all steps
// of that loop. Few pages are then open on the packed side.
template <Direction kDirection, class Width>
void copy_tiled(Width width, const LoopLevel& x, const LoopLevel& y, const LoopLevel& z,
                Address memory, Address packed) {
  constexpr auto kBytes = Width::kBytes;
  constexpr bool kTransposes = Transposer<kBytes>::kSide != 0;
  const auto side = [](std::int64_t stride) {
    constexpr std::int64_t kLeast = 8;
    return std::max(kLeast, kLineBytes / std::max<std::int64_t>(std::abs(stride), 1));
  };
  auto side_x = side(x.stride), side_y = side(y.packed_stride);
  bool in_registers = false;
  if constexpr (kTransposes) {
    in_registers = x.stride == kBytes && y.packed_stride == kBytes;
    if (in_registers) side_x = side_y = kLineBytes / kBytes;
  }
  const auto tile = [&](std::int64_t i, std::int64_t j, std::int64_t k) {
    const Rectangle r{i, std::min(i + side_x, x.count), j, std::min(j + side_y, y.count)};
    const auto m = memory + static_cast<Address>(k * z.stride);
    const auto p = packed + static_cast<Address>(k * z.packed_stride);
    if constexpr (kTransposes) {
      if (in_registers && r.last_x - r.x == side_x && r.last_y - r.y == side_y)
        return transpose_lines<kDirection, kBytes>(
            x, y, m + static_cast<Address>(i * x.stride + j * y.stride),
            p + static_cast<Address>(i * x.packed_stride + j * y.packed_stride));
    }
    copy_tile<kDirection>(width, x, y, r, m, p);
  };
  if (kDirection == Direction::pack || z.count > 1) {
    for (std::int64_t i = 0; i < x.count; i += side_x)
      for (std::int64_t k = 0; k < z.count; ++k)
        for (std::int64_t j = 0; j < y.count; j += side_y) tile(i, j, k);
  } else {
    for (std::int64_t j = 0; j < y.count; j += side_y)
      for (std::int64_t i = 0; i < x.count; i += side_x) tile(i, j, 0);
  }
}

// ---- Nests ----

// Calls inner(memory, packed) for every step of the levels. The last level is the outermost loop.
template <class Inner>
void for_outer(std::span<const LoopLevel> levels, Address memory, Address packed,
               const Inner& inner) {
  const auto [count, stride, packed_stride] = levels.empty() ? LoopLevel{1, 0, 0} : levels.back();
  const auto s = static_cast<Address>(stride), q = static_cast<Address>(packed_stride);
  if (levels.size() > 1) {
    for (auto i = count; i > 0; --i, memory += s, packed += q)
      for_outer(levels.first(levels.size() - 1), memory, packed, inner);
    return;
  }
  for (auto i = count; i > 0; --i, memory += s, packed += q) inner(memory, packed);
}

template <class Row>
void copy_rows(Row row, std::span<const LoopLevel> levels, Address memory, Address packed) {
  for_outer(
      levels.subspan(1), memory, packed,
      [ row, innermost = levels[0] ](Address m, Address p)
          __attribute__((always_inline)) { row(innermost, m, p); });
}

template <Direction kDirection, class Width>
void run_kernel(const Nest& nest, Address memory, Address packed) {
  copy_run<kDirection>(width_of<Width>(nest.run), memory, packed);
}
template <Direction kDirection, class Width>
void tiles_kernel(const Nest& nest, Address memory, Address packed) {
  const auto& levels = nest.levels;
  const auto width = width_of<Width>(nest.run);
  const auto &x = levels[0], &y = levels[1];
  const auto z = levels.size() > 2 ? levels[2] : LoopLevel{1, 0, 0};
  // The steps of the third loop whose lines fit into the nearest cache.
  constexpr std::int64_t kNearBytes = 32 * 1024;
  const auto lines = y.count * (x.count * std::abs(x.stride) / kLineBytes + 1) * kLineBytes;
  const auto steps = std::clamp<std::int64_t>(kNearBytes / lines, 1, z.count);
  for_outer(levels.subspan(std::min<std::size_t>(3, levels.size())), memory, packed,
            [&](Address m, Address p) {
              for (std::int64_t k = 0; k < z.count; k += steps)
                copy_tiled<kDirection>(width, x, y,
                                       {std::min(steps, z.count - k), z.stride, z.packed_stride},
                                       m + static_cast<Address>(k * z.stride),
                                       p + static_cast<Address>(k * z.packed_stride));
            });
}
template <class Row>
void rows_kernel(const Nest& nest, Address memory, Address packed) {
  copy_rows(Row::of(nest.run), nest.levels, memory, packed);
}

template <class Row>
void twins_kernel(const Nest& nest, Address memory, Address packed, Address memory_apart,
                  Address packed_apart) {
  copy_rows(Row{memory_apart, packed_apart}, nest.levels, memory, packed);
}

template <Direction kDirection, class Width>
NestKernel choose_kernel(const Nest& nest) {
  const auto& levels = nest.levels;
  if (levels.empty()) return run_kernel<kDirection, Width>;
  if constexpr (!std::is_void_v<typename Width::OfTiles>) {
    if (is_tiled(levels)) return tiles_kernel<kDirection, typename Width::OfTiles>;
  }
  const auto& row = levels[0];
  constexpr auto kBytes = Width::kBytes;
  if constexpr (kBytes > 0) {
    if (levels.size() > 1) {
      if (row.count == 2) return rows_kernel<ShortRow<kDirection, Width, 2>>;
      if (row.count == 3) return rows_kernel<ShortRow<kDirection, Width, 3>>;
      if (row.count == 4) return rows_kernel<ShortRow<kDirection, Width, 4>>;
    }
  }
  if constexpr (kBytes == 4 || kBytes == 8) {
    using Element = typename ChunkOf<kBytes>::Type;
    if (row.packed_stride == kBytes) {
      if (row.stride == 2 * kBytes) return rows_kernel<ElementRow<kDirection, Element, 2>>;
      if (row.stride == 3 * kBytes) return rows_kernel<ElementRow<kDirection, Element, 3>>;
      if (row.stride == 4 * kBytes) return rows_kernel<ElementRow<kDirection, Element, 4>>;
    }
  }
  return rows_kernel<StridedRow<kDirection, Width>>;
}

template <Direction kDirection>
NestKernel choose_kernel(const Nest& nest) {
  NestKernel kernel = nullptr;
  with_width(nest.run,
             [&](auto width) { kernel = choose_kernel<kDirection, decltype(width)>(nest); });
  return kernel;
}

/// Copies all runs of a nest.
template <Direction kDirection>
void copy_nest(const Nest& nest, Address memory, Address packed) {
  choose_kernel<kDirection>(nest)(nest, memory, packed);
}

/// Copies consecutive bytes.
template <Direction kDirection>
void copy_bytes(std::int64_t bytes, Address memory, Address packed) {
  copy_run<kDirection>(Long{bytes}, memory, packed);
}

// ---- Groups: stores that follow each other into one cache line cost less than into many ----

// Copies all atoms of a group in one loop that knows their widths.
template <Direction kDirection, std::size_t... kAtom, class... Width>
void copy_group_row(const detail::AtomGroup& group, const LoopLevel& level, Address memory,
                    Address packed, std::index_sequence<kAtom...>, Width... width) {
  const Address m_at[] = {static_cast<Address>(group.atoms[kAtom].displacement)...};
  const Address p_at[] = {static_cast<Address>(group.atoms[kAtom].packed_offset)...};
  const auto s = static_cast<Address>(level.stride), q = static_cast<Address>(level.packed_stride);
#pragma GCC unroll 4
  for (auto count = level.count; count > 0; --count, memory += s, packed += q)
    (copy_run<kDirection>(width, memory + m_at[kAtom], packed + p_at[kAtom]), ...);
}

// Finds the widths of the atoms, which are in descending order: the next atom is at most kMost
// bytes wide.
template <Direction kDirection, std::size_t kMost, class... Width>
void choose_widths(const detail::AtomGroup& group, const LoopLevel& level, Address memory,
                   Address packed, Width... width) {
  constexpr auto kChosen = sizeof...(Width);
  if constexpr (kChosen > 0) {
    if (kChosen == group.size)
      return copy_group_row<kDirection>(group, level, memory, packed,
                                        std::make_index_sequence<kChosen>(), width...);
  }
  if constexpr (kChosen < detail::AtomGroup::kMaxSize) {
    if (group.atoms[kChosen].bytes == kMost)
      return choose_widths<kDirection, kMost>(group, level, memory, packed, width...,
                                              Fixed<kMost>{});
    if constexpr (kMost > 1)
      return choose_widths<kDirection, kMost / 2>(group, level, memory, packed, width...);
  }
}

/// Copies every atom of the group level.count times. Copies are the strides of the level apart.
template <Direction kDirection>
void copy_group(const detail::AtomGroup& group, const LoopLevel& level, Address memory,
                Address packed) {
  choose_widths<kDirection, static_cast<std::size_t>(detail::Atom::kMaxBytes)>(group, level, memory,
                                                                               packed);
}

// ---- Lists ----

/// Copies runs of `run` bytes at memory + displacements[i] from or to consecutive packed places.
template <Direction kDirection, class Displacement>
void copy_blocks(std::int64_t run, std::span<const Displacement> displacements, Address memory,
                 Address packed) {
  with_width(run, [&](auto width) {
    using B = Batch<kDirection, decltype(width)>;
    const auto m = memory;  // in a register: for the compiler, stores might change `memory`
    const auto* at = displacements.data();
    const auto* const end = at + displacements.size();
    auto p = packed;
    const auto memory_of = [&](std::size_t i) {
      return m + static_cast<Address>(std::int64_t{at[i]});
    };
    if constexpr (B::kRuns > 0)
      for (; end - at >= B::kRuns + B::kSpare; at += B::kRuns) {
        B::copy(memory_of, p);
        p += static_cast<Address>(B::kRuns * width.size());
      }
#pragma GCC unroll 4
    for (; at != end; ++at) {
      copy_run<kDirection>(width, memory_of(0), p);
      p += static_cast<Address>(width.size());
    }
  });
}

// Copies a run whose width differs from that of the run before: few branches, since none can be
// predicted.
template <Direction kDirection>
[[gnu::always_inline]] inline void copy_some(std::int64_t bytes, Address memory, Address packed) {
  if (bytes >= kMemcpyFrom) return copy_run<kDirection>(Long{bytes}, memory, packed);
  if (bytes >= 32) return copy_run<kDirection>(Overlapping{bytes}, memory, packed);
  if (bytes >= 16) return copy_run<kDirection>(Joined<16, 16>{bytes}, memory, packed);
  if (bytes >= 8) return copy_run<kDirection>(Joined<8, 8>{bytes}, memory, packed);
  if (bytes >= 4) return copy_run<kDirection>(Joined<4, 4>{bytes}, memory, packed);
  if (bytes >= 2) return copy_run<kDirection>(Joined<2, 2>{bytes}, memory, packed);
  if (bytes == 1) copy_run<kDirection>(Fixed<1>{}, memory, packed);
}

/// Describes a run: its displacement from the begin of its list, and its bytes, which may be 0.
struct RunAt {
  std::int64_t displacement, bytes;
};

/// Copies `count` runs, each described by next(), from or to consecutive packed places.
template <Direction kDirection, class Next>
void copy_runs(std::int64_t count, Next next, Address memory, Address packed) {
  for (; count > 0; --count) {
    const RunAt run = next();
    copy_some<kDirection>(run.bytes, memory + static_cast<Address>(run.displacement), packed);
    packed += static_cast<Address>(run.bytes);
  }
}

}  // namespace halocline::dtype::host
