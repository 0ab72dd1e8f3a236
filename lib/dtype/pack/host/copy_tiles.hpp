// SPDX-License-Identifier: BSD-3-Clause
// Copies two loops in tiles, if their shortest strides are in different loops: level x has the
// short stride in memory, level y the one in the packed stream. Internal to the sources here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "dtype/pack/host/copy_rows.hpp"

namespace halocline::dtype::host {

// Is a rectangle of a plane, in steps of x and y.
struct Rectangle {
  std::int64_t x, last_x, y, last_y;
};

template <CopyDirection kDirection, class Width>
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
template <CopyDirection kDirection, std::int64_t kBytes>
void transpose_lines(const LoopLevel& x, const LoopLevel& y, Address memory, Address packed) {
  constexpr auto kSide = Transposer<kBytes>::kSide;
  constexpr auto kLine = kLineBytes / kBytes;
  for (std::int64_t i = 0; i < kLine; i += kSide)
    for (std::int64_t j = 0; j < kLine; j += kSide) {
      const auto m = memory + static_cast<Address>(i * kBytes + j * y.stride);
      const auto p = packed + static_cast<Address>(i * x.packed_stride + j * kBytes);
      if constexpr (kDirection == CopyDirection::pack)
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
template <CopyDirection kDirection, class Width>
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
  if (kDirection == CopyDirection::pack || z.count > 1) {
    for (std::int64_t i = 0; i < x.count; i += side_x)
      for (std::int64_t k = 0; k < z.count; ++k)
        for (std::int64_t j = 0; j < y.count; j += side_y) tile(i, j, k);
  } else {
    for (std::int64_t j = 0; j < y.count; j += side_y)
      for (std::int64_t i = 0; i < x.count; i += side_x) tile(i, j, 0);
  }
}

}  // namespace halocline::dtype::host
