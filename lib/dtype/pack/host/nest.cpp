// SPDX-License-Identifier: BSD-3-Clause
// Holds the kernels of nests: loops around one run, whose width is a constant of the kernel where
// it can be. kernel_for() chooses by these rules, the first that holds:
//
//     no loop                                            run_kernel
//     two innermost loops in tiles, runs below 64 bytes  tiles_kernel   copy_tiles.hpp
//     inner loop of 2 to 4 steps, width fixed            ShortRow       copy_rows.hpp
//     4 or 8 bytes, 2 to 4 elements apart                ElementRow     copy_rows.hpp
//     all others                                         StridedRow     copy_rows.hpp
//
// The bytes move in copy_run() of copy_widths.hpp.
#include "dtype/pack/host/nest.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "dtype/pack/host/copy_rows.hpp"
#include "dtype/pack/host/copy_tiles.hpp"

namespace halocline::dtype::host {

namespace {

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

template <CopyDirection kDirection, class Width>
void run_kernel(const Nest& nest, Address memory, Address packed) {
  copy_run<kDirection>(width_of<Width>(nest.run), memory, packed);
}
template <CopyDirection kDirection, class Width>
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
void twins_kernel(const Nest& nest, Address memory, Address packed, const TwinDistances& apart) {
  copy_rows(Row{apart}, nest.levels, memory, packed);
}

template <class Width, std::size_t kTwins>
TwinKernel twin_kernel_for(const Nest& nest) {
  const auto steps = nest.levels.size() > 1 ? nest.levels[0].count : 0;
  return steps == 2   ? twins_kernel<TwinRow<Width, kTwins, 2>>
         : steps == 3 ? twins_kernel<TwinRow<Width, kTwins, 3>>
         : steps == 4 ? twins_kernel<TwinRow<Width, kTwins, 4>>
                      : twins_kernel<TwinRow<Width, kTwins>>;
}

template <CopyDirection kDirection, class Width>
NestKernel kernel_for(const Nest& nest) {
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

}  // namespace

template <CopyDirection kDirection>
NestKernel choose_kernel(const Nest& nest) {
  NestKernel kernel = nullptr;
  with_width(nest.run, [&](auto width) { kernel = kernel_for<kDirection, decltype(width)>(nest); });
  return kernel;
}

template NestKernel choose_kernel<CopyDirection::pack>(const Nest&);
template NestKernel choose_kernel<CopyDirection::unpack>(const Nest&);

TwinKernel choose_twin_kernel(const Nest& nest, std::size_t twins) {
  TwinKernel kernel = nullptr;
  with_width(nest.run, [&](auto width) {
    using Width = decltype(width);
    if constexpr (Width::kBytes > 0) {
      if (twins == 1) kernel = twin_kernel_for<Width, 1>(nest);
      if (twins == 3) kernel = twin_kernel_for<Width, 3>(nest);
    }
  });
  return kernel;
}

NestKernel choose_streaming_kernel(const Nest& nest) {
  if (!kCanStream || nest.run < kStreamedFrom) return nullptr;
  return nest.levels.empty() ? run_kernel<CopyDirection::pack, Streamed>
                             : rows_kernel<StridedRow<CopyDirection::pack, Streamed>>;
}

void end_streams() {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

}  // namespace halocline::dtype::host
