// SPDX-License-Identifier: BSD-3-Clause
// Describes the regions of a block that its neighbours get, for loops as a good programmer writes
// them. Arrays are (z, y, x), with x contiguous. Bit k of a shape says that axis k (0: z) is
// kRadius thin.
#pragma once

#include <cstdint>
#include <type_traits>

namespace halocline::dtype::bench {

inline constexpr std::int64_t kRadius = 3;

/// Returns the extent of a region along an axis. The radius is known when a stencil is compiled,
/// the size of the block is not.
template <bool kThin>
auto extent_of(std::int64_t points) {
  if constexpr (kThin) {
    return std::integral_constant<std::int64_t, kRadius>{};
  } else {
    return points;
  }
}

/// Calls use(shape) with the shape, 1 to 7, as a constant.
template <class Use>
auto with_shape(int shape, Use use) {
  switch (shape) {
    case 1:
      return use(std::integral_constant<int, 1>{});
    case 2:
      return use(std::integral_constant<int, 2>{});
    case 3:
      return use(std::integral_constant<int, 3>{});
    case 4:
      return use(std::integral_constant<int, 4>{});
    case 5:
      return use(std::integral_constant<int, 5>{});
    case 6:
      return use(std::integral_constant<int, 6>{});
    default:
      return use(std::integral_constant<int, 7>{});
  }
}

}  // namespace halocline::dtype::bench
