// SPDX-License-Identifier: BSD-3-Clause
// Goes through the points of boxes: on the host several points of a row at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>

#include "physics/lanes.hpp"
#include "physics/mhd/kernel.hpp"

namespace halocline::app::mhd {

/// Calls compute<V>(place) of Body for the points of a box. Body derives from Kernel<T>.
///
/// On the host it goes through tiles, with V = WideLanes<T> or Lanes<T> where points lie side by
/// side. On a device V is T.
template <class T, class Body>
struct Loop : Body {
  struct Tile {};
  struct Point {};
  // Rows of a tile, and the most planes. The rows of 7 planes of 8 fields should stay in a core's
  // cache while the tile's planes follow each other.
  static constexpr std::int64_t kTileRows = 16, kMostTilePlanes = 32;
  std::int64_t tiles_along_y = 1, tile_planes = 1;

  KOKKOS_FUNCTION void operator()(Point, std::int64_t i) const {
    this->template compute<T>(this->place(i));
  }

  void operator()(Tile, std::int64_t tile) const {
#if defined(HALOCLINE_WIDE_LANES)
    if (has_wide_lanes()) return compute_wide(tile);
#endif
    compute_tile<Lanes<T>>(tile);
  }

 private:
#if defined(HALOCLINE_WIDE_LANES)
  HALOCLINE_WIDE_LANES void compute_wide(std::int64_t tile) const {
    compute_tile<WideLanes<T>>(tile);
  }
#endif

  // Computes a tile with vectors V. What it calls is inlined into it, also for WideLanes.
  template <class V>
  [[gnu::always_inline]] void compute_tile(std::int64_t tile) const {
    const auto y0 = tile % tiles_along_y * kTileRows, z0 = tile / tiles_along_y * tile_planes;
    for (auto z = z0; z < std::min(z0 + tile_planes, this->extent[2]); ++z)
      for (auto y = y0; y < std::min(y0 + kTileRows, this->extent[1]); ++y) {
        std::int64_t x = 0;
        if (this->strides.x == 1) {
          for (; x + kLanes<V> <= this->extent[0]; x += kLanes<V>)
            this->template compute<V>(this->place(x, y, z));
          for (; x + kLanes<Lanes<T>> <= this->extent[0]; x += kLanes<Lanes<T>>)
            this->template compute<Lanes<T>>(this->place(x, y, z));
        }
        for (; x < this->extent[0]; ++x) this->template compute<T>(this->place(x, y, z));
      }
  }
};

/// Starts a loop on the points of `boxes`, which have stored coordinates. Does not wait for its
/// end.
template <class ExecutionSpace, class T, class Body>
void start_loop(Loop<T, Body> kernel, std::span<const comm::Box> boxes) {
  using Kernel = Loop<T, Body>;
  constexpr bool kTiles = std::is_same_v<ExecutionSpace, HostSpace>;
  using Step = std::conditional_t<kTiles, typename Kernel::Tile, typename Kernel::Point>;
  for (const auto& box : boxes) {
    if (box.points() == 0) continue;
    set_box(kernel, box);
    kernel.tiles_along_y = (box.extent[1] + Kernel::kTileRows - 1) / Kernel::kTileRows;
    // Each thread gets a few tiles, so that none waits long for the last one.
    constexpr std::int64_t kTilesPerThread = 4;
    kernel.tile_planes = std::clamp<std::int64_t>(
        kernel.tiles_along_y * box.extent[2] / (kTilesPerThread * HostSpace().concurrency()), 1,
        Kernel::kMostTilePlanes);
    const auto steps = kTiles ? kernel.tiles_along_y *
                                    ((box.extent[2] + kernel.tile_planes - 1) / kernel.tile_planes)
                              : box.points();
    Kokkos::parallel_for(
        "halocline::mhd",
        Kokkos::RangePolicy<ExecutionSpace, Step, Kokkos::IndexType<std::int64_t>>(0, steps),
        kernel);
  }
}

}  // namespace halocline::app::mhd
