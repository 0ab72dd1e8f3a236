// SPDX-License-Identifier: BSD-3-Clause
// The copy loops of the host packer: every loop over runs ends here. Internal to copy_range.cpp.
//
// Best peer: Open MPI calls memcpy for every block, MPICH copies one basic element at a time. Here
// the width of a run is a constant of the loop that copies it, and loops whose shortest strides are
// in different levels run in tiles.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "dtype/pack/host/copy_range.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::dtype::host {

inline constexpr std::int64_t kLineBytes = 64;

// Widths of a run: how many bytes, and how they are moved without touching any other byte.
template <std::size_t kBytes>
struct Fixed {
  static constexpr std::int64_t size() { return kBytes; }
  static void copy(void* to, const void* from) { std::memcpy(to, from, kBytes); }
};
// kHead bytes and at most kTail more, as two copies that may overlap.
template <std::size_t kHead, std::size_t kTail>
struct Joined {
  std::int64_t bytes;
  std::int64_t size() const { return bytes; }
  void copy(void* to, const void* from) const {
    struct Head {
      std::byte bytes[kHead];
    } head;
    struct Tail {
      std::byte bytes[kTail];
    } tail;
    const auto at = bytes - static_cast<std::int64_t>(kTail);
    std::memcpy(&head, from, kHead);
    std::memcpy(&tail, static_cast<const std::byte*>(from) + at, kTail);
    std::memcpy(to, &head, kHead);
    std::memcpy(static_cast<std::byte*>(to) + at, &tail, kTail);
  }
};

// By reference: without AVX, vectors of 32 bytes have no ABI to be passed by value.
template <class Vector>
void load(Vector& value, Address address) {
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
}
template <class Vector>
void store(Address address, const Vector& value) {
  std::memcpy(reinterpret_cast<void*>(address), &value, sizeof value);
}

// From 32 bytes up, in vectors of 32 bytes, four loads ahead of their stores; the last vector may
// overlap the one before.
struct Wide {
  std::int64_t bytes;
  std::int64_t size() const { return bytes; }
  void copy(void* to_begin, const void* from_begin) const {
    using V [[gnu::vector_size(32)]] = std::uint64_t;
    constexpr Address kVector = 32;
    auto to = reinterpret_cast<Address>(to_begin), from = reinterpret_cast<Address>(from_begin);
    auto left = static_cast<Address>(bytes);
    for (; left >= 4 * kVector; left -= 4 * kVector, from += 4 * kVector, to += 4 * kVector) {
      V a, b, c, d;
      load(a, from);
      load(b, from + kVector);
      load(c, from + 2 * kVector);
      load(d, from + 3 * kVector);
      store(to, a);
      store(to + kVector, b);
      store(to + 2 * kVector, c);
      store(to + 3 * kVector, d);
    }
    V last;
    for (; left >= kVector; left -= kVector, from += kVector, to += kVector) {
      load(last, from);
      store(to, last);
    }
    if (left > 0) {
      load(last, from + left - kVector);
      store(to + left - kVector, last);
    }
  }
};
// Where the C library's memcpy is faster in a loop over runs, measured: bench group `widths`.
inline constexpr std::int64_t kMemcpyFrom = 512;
struct Long {
  std::int64_t bytes;
  std::int64_t size() const { return bytes; }
  void copy(void* to, const void* from) const {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
};

// For runs from kHead up to 2 * kHead bytes: the shortest tail that does.
template <std::size_t kHead, std::size_t kTail = 1, class Function>
void with_tail(std::int64_t run, Function function) {
  if constexpr (kTail < kHead) {
    if (run > static_cast<std::int64_t>(kHead + kTail))
      return with_tail<kHead, 2 * kTail>(run, function);
  }
  function(Joined<kHead, kTail>{run});
}

template <class Function>
void with_width(std::int64_t run, Function function) {
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
  if constexpr (kDirection == Direction::pack) {
    width.copy(reinterpret_cast<void*>(packed), reinterpret_cast<const void*>(memory));
  } else {
    width.copy(reinterpret_cast<void*>(memory), reinterpret_cast<const void*>(packed));
  }
}

// ---- Rows: one loop; how it is run is chosen once per nest ----

// Any strides. Four steps at once: each address is one addition away from that of the first, not
// from the one before.
template <Direction kDirection, class Width>
struct StridedRow {
  static constexpr Direction direction = kDirection;
  Width width;

  template <class Stride, class PackedStride>
  [[gnu::always_inline]] void steps(std::int64_t count, Stride stride, PackedStride packed_stride,
                                    Address memory, Address packed) const {
    const auto s = static_cast<Address>(stride), q = static_cast<Address>(packed_stride());
    for (; count >= 4; count -= 4, memory += 4 * s, packed += 4 * q) {
      copy_run<kDirection>(width, memory, packed);
      copy_run<kDirection>(width, memory + s, packed + q);
      copy_run<kDirection>(width, memory + 2 * s, packed + 2 * q);
      copy_run<kDirection>(width, memory + 3 * s, packed + 3 * q);
    }
    if (count >= 2) {
      copy_run<kDirection>(width, memory, packed);
      copy_run<kDirection>(width, memory + s, packed + q);
      memory += 2 * s, packed += 2 * q;
    }
    if (count % 2 == 1) copy_run<kDirection>(width, memory, packed);
  }
  [[gnu::always_inline]] void operator()(const LoopLevel& level, Address memory,
                                         Address packed) const {
    // The compiler sees the packed stride where it is the width.
    if (level.packed_stride == width.size())
      steps(
          level.count, level.stride, [this] { return width.size(); }, memory, packed);
    else
      steps(
          level.count, level.stride, [&] { return level.packed_stride; }, memory, packed);
  }
};

// Consecutive in the packed stream, a step in a line of its own each: asks for the lines of later
// steps in time.
template <Direction kDirection, class Width>
struct PrefetchingRow {
  static constexpr Direction direction = kDirection;
  Width width;
  Address ahead;  // how far

  [[gnu::always_inline]] void operator()(const LoopLevel& level, Address memory,
                                         Address packed) const {
    const auto s = static_cast<Address>(level.stride),
               q = static_cast<Address>(level.packed_stride);
    const auto last = static_cast<Address>(width.size() - 1);
    for (auto count = level.count; count > 0; --count, memory += s, packed += q) {
      constexpr int kWrites = kDirection == Direction::unpack ? 1 : 0;
      __builtin_prefetch(reinterpret_cast<const void*>(memory + ahead), kWrites);
      if (width.size() > 8)
        __builtin_prefetch(reinterpret_cast<const void*>(memory + ahead + last), kWrites);
      copy_run<kDirection>(width, memory, packed);
    }
  }
};

// Through a register of the element's type, from or to any address.
template <Direction kDirection, class Element>
[[gnu::always_inline]] inline void copy_element(std::byte* memory, std::byte* packed) {
  Element element;
  std::memcpy(&element, kDirection == Direction::pack ? memory : packed, sizeof element);
  std::memcpy(kDirection == Direction::pack ? packed : memory, &element, sizeof element);
}

// Every kStep-th element of a basic type, consecutive in the packed stream: the compiler makes
// vector code of it.
template <Direction kDirection, class Element, std::int64_t kStep>
struct ElementRow {
  static constexpr Direction direction = kDirection;
  static constexpr Fixed<sizeof(Element)> width{};

  [[gnu::always_inline]] void operator()(const LoopLevel& level, Address memory,
                                         Address packed) const {
    auto* __restrict const m = reinterpret_cast<std::byte*>(memory);
    auto* __restrict const p = reinterpret_cast<std::byte*>(packed);
    constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Element));
    const auto count = level.count;
    for (std::int64_t i = 0; i < count; ++i)
      copy_element<kDirection, Element>(m + i * kStep * kBytes, p + i * kBytes);
  }
};

// ---- Tiles: level x has the short stride in memory, level y the one in the packed stream ----

// A rectangle of a plane, in steps of x and y.
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

// Square tiles of elements of a few bytes, transposed in registers.
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

// One tile of whole cache lines on both sides, in registers.
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

template <class Width>
struct BytesOf {
  static constexpr std::int64_t value = 0;
};
template <std::size_t kBytes>
struct BytesOf<Fixed<kBytes>> {
  static constexpr std::int64_t value = kBytes;
};

// Two loops in tiles, along the rows of the side that is written: fewer pages are open for writing
// than for reading.
template <Direction kDirection, class Width>
void copy_tiled(Width width, const LoopLevel& x, const LoopLevel& y, Address memory,
                Address packed) {
  constexpr auto kBytes = BytesOf<Width>::value;
  constexpr bool kTransposes = Transposer<kBytes>::kSide != 0;
  const auto side = [](std::int64_t stride) {
    constexpr std::int64_t kLeast = 8;
    return std::max(std::int64_t{kLeast}, kLineBytes / std::max<std::int64_t>(std::abs(stride), 1));
  };
  auto side_x = side(x.stride), side_y = side(y.packed_stride);
  bool in_registers = false;
  if constexpr (kTransposes) {
    in_registers = x.stride == kBytes && y.packed_stride == kBytes;
    if (in_registers) side_x = side_y = kLineBytes / kBytes;
  }
  const auto tile = [&](std::int64_t i, std::int64_t j) {
    const Rectangle r{i, std::min(i + side_x, x.count), j, std::min(j + side_y, y.count)};
    if constexpr (kTransposes) {
      if (in_registers && r.last_x - r.x == side_x && r.last_y - r.y == side_y)
        return transpose_lines<kDirection, kBytes>(
            x, y, memory + static_cast<Address>(i * x.stride + j * y.stride),
            packed + static_cast<Address>(i * x.packed_stride + j * y.packed_stride));
    }
    copy_tile<kDirection>(width, x, y, r, memory, packed);
  };
  if (kDirection == Direction::pack) {
    for (std::int64_t i = 0; i < x.count; i += side_x)
      for (std::int64_t j = 0; j < y.count; j += side_y) tile(i, j);
  } else {
    for (std::int64_t j = 0; j < y.count; j += side_y)
      for (std::int64_t i = 0; i < x.count; i += side_x) tile(i, j);
  }
}

// ---- Nests ----

// Calls inner(memory, packed) for every step of the levels, the last of which is the outermost
// loop.
template <class Inner>
void for_outer(std::span<const LoopLevel> levels, Address memory, Address packed, Inner inner) {
  if (levels.empty()) return inner(memory, packed);
  const auto& level = levels.back();
  const auto s = static_cast<Address>(level.stride), q = static_cast<Address>(level.packed_stride);
  if (levels.size() == 1) {
    for (auto count = level.count; count > 0; --count, memory += s, packed += q)
      inner(memory, packed);
    return;
  }
  for (auto count = level.count; count > 0; --count, memory += s, packed += q)
    for_outer(levels.first(levels.size() - 1), memory, packed, inner);
}

template <class Row>
void copy_rows(const Row& row, std::span<const LoopLevel> levels, Address memory, Address packed) {
  const auto innermost = levels[0];
  for_outer(levels.subspan(1), memory, packed, [&](Address m, Address p) { row(innermost, m, p); });
}

// The distance at which to prefetch; 0 where the hardware does as well.
inline std::int64_t prefetch_distance(std::int64_t run, std::span<const LoopLevel> levels) {
  constexpr std::int64_t kSteps = 24;  // in flight
  if (run >= 4 * kLineBytes || std::abs(levels[0].stride) < kLineBytes) return 0;
  if (levels.size() == 1 || levels[0].count >= kSteps) return kSteps * levels[0].stride;
  return (kSteps + levels[0].count - 1) / levels[0].count * levels[1].stride;
}

template <Direction kDirection, class Width>
void copy_nest(Width width, std::span<const LoopLevel> levels, std::int64_t bytes, Address memory,
               Address packed) {
  if (levels.empty()) return copy_run<kDirection>(width, memory, packed);
  if (levels.size() >= 2 && levels[0].packed_stride > levels[1].packed_stride)
    return for_outer(levels.subspan(2), memory, packed, [&](Address m, Address p) {
      copy_tiled<kDirection>(width, levels[0], levels[1], m, p);
    });
  if constexpr (BytesOf<Width>::value == 4 || BytesOf<Width>::value == 8) {
    constexpr auto kBytes = BytesOf<Width>::value;
    using Element = std::conditional_t<kBytes == 4, std::uint32_t, std::uint64_t>;
    if (levels[0].packed_stride == kBytes) {
      switch (levels[0].stride) {
        case 2 * kBytes:
          return copy_rows(ElementRow<kDirection, Element, 2>{}, levels, memory, packed);
        case 3 * kBytes:
          return copy_rows(ElementRow<kDirection, Element, 3>{}, levels, memory, packed);
        case 4 * kBytes:
          return copy_rows(ElementRow<kDirection, Element, 4>{}, levels, memory, packed);
        default:
          break;
      }
    }
  }
  constexpr std::int64_t kPrefetchFrom = 32 * 1024;  // packed; what is smaller stays in a cache
  if (bytes >= kPrefetchFrom) {
    if (const auto ahead = prefetch_distance(width.size(), levels))
      return copy_rows(PrefetchingRow<kDirection, Width>{width, static_cast<Address>(ahead)},
                       levels, memory, packed);
  }
  copy_rows(StridedRow<kDirection, Width>{width}, levels, memory, packed);
}

/// Copies `bytes` bytes: the steps of all levels, nested, runs of `run` bytes innermost. levels[0]
/// is the innermost.
template <Direction kDirection>
void copy_levels(std::int64_t run, std::span<const LoopLevel> levels, std::int64_t bytes,
                 Address memory, Address packed) {
  with_width(run, [&](auto width) { copy_nest<kDirection>(width, levels, bytes, memory, packed); });
}

/// Copies consecutive bytes.
template <Direction kDirection>
void copy_bytes(std::int64_t bytes, Address memory, Address packed) {
  copy_run<kDirection>(Long{bytes}, memory, packed);
}

// ---- Groups: stores that follow each other into one cache line cost less than into many ----

// One loop for all atoms of a group, whose widths it knows.
template <Direction kDirection, std::size_t... kAtom, class... Width>
void copy_group_row(const detail::AtomGroup& group, const LoopLevel& level, Address memory,
                    Address packed, std::index_sequence<kAtom...>, Width... width) {
  const Address m_at[] = {static_cast<Address>(group.atoms[kAtom].displacement)...};
  const Address p_at[] = {static_cast<Address>(group.atoms[kAtom].packed_offset)...};
  const auto s = static_cast<Address>(level.stride), q = static_cast<Address>(level.packed_stride);
  for (auto count = level.count; count > 0; --count, memory += s, packed += q)
    (copy_run<kDirection>(width, memory + m_at[kAtom], packed + p_at[kAtom]), ...);
}

// Atoms stand in descending order of their widths: the next one is at most kMost bytes wide.
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

/// Copies every atom of the group level.count times, the level's strides apart.
template <Direction kDirection>
void copy_group(const detail::AtomGroup& group, const LoopLevel& level, Address memory,
                Address packed) {
  choose_widths<kDirection, static_cast<std::size_t>(detail::Atom::kMaxBytes)>(group, level, memory,
                                                                               packed);
}

// ---- Lists ----

// Elements of a basic type at byte displacements: the compiler makes gathers of it.
template <Direction kDirection, class Element, class Displacement>
void copy_elements(std::span<const Displacement> displacements, Address memory, Address packed) {
  auto* __restrict const m = reinterpret_cast<std::byte*>(memory);
  auto* __restrict const p = reinterpret_cast<std::byte*>(packed);
  const auto* __restrict const at = displacements.data();
  const auto n = displacements.size();
  for (std::size_t i = 0; i < n; ++i)
    copy_element<kDirection, Element>(m + at[i], p + i * sizeof(Element));
}

/// Copies runs of `run` bytes at memory + displacements[i] from or to consecutive packed places.
template <Direction kDirection, class Displacement>
void copy_blocks(std::int64_t run, std::span<const Displacement> displacements, Address memory,
                 Address packed) {
  if (run == 4) return copy_elements<kDirection, std::uint32_t>(displacements, memory, packed);
  if (run == 8) return copy_elements<kDirection, std::uint64_t>(displacements, memory, packed);
  with_width(run, [&](auto width) {
    auto p = packed;
#pragma GCC unroll 4
    for (const auto displacement : displacements) {
      copy_run<kDirection>(width, memory + static_cast<Address>(std::int64_t{displacement}), p);
      p += static_cast<Address>(width.size());
    }
  });
}

/// Copies the runs between the ends[i], which are counted from `begin` packed bytes before
/// `packed`.
template <Direction kDirection>
void copy_runs(std::span<const std::int64_t> displacements, std::span<const std::int64_t> ends,
               std::int64_t begin, Address memory, Address packed) {
  for (std::size_t i = 0; i < displacements.size(); ++i) {
    const auto bytes = ends[i] - begin;
    with_width(bytes, [&](auto width) {
      copy_run<kDirection>(width, memory + static_cast<Address>(displacements[i]), packed);
    });
    packed += static_cast<Address>(bytes);
    begin = ends[i];
  }
}

}  // namespace halocline::dtype::host
