// SPDX-License-Identifier: BSD-3-Clause
// The points at which a machine is measured.
//
// Best peer: [PEA21 section 6.3, figure 10] packs 64 B to 4 MiB of blocks at one stride; here
// strides are an axis, and blocks lie in memory that does not fit into a cache.
#pragma once

#include <cstdint>
#include <vector>

#include "dtype/pack/pack_plan.hpp"
#include "dtype/select/time_table.hpp"

namespace halocline::comm::detail {

/// Sizes. Bytes and blocks are powers of two.
struct Grid {
  std::vector<std::int64_t> message_bytes;
  std::vector<std::int64_t> messages_at_once;
  std::int64_t bytes_at_once;  ///< of several messages together, at most
  std::vector<std::int64_t> copy_bytes;
  dtype::PackTable::Axes packs;
  std::int64_t bytes_growth;  ///< from a size to the next, about
};

/// The grid for that much time in all: a coarse one below kFullGridSeconds.
inline constexpr double kFullGridSeconds = 10;
Grid make_grid(double seconds);

/// Bytes that the blocks lie in, whatever their stride.
std::int64_t field_bytes(const Grid& grid);

/// Blocks that bytes are packed from.
struct PackShape {
  std::int64_t bytes, block_bytes, stride_bytes;
  bool operator==(const PackShape&) const = default;
};

/// What a point of PackTable stands for where the block is longer than the bytes or the stride.
PackShape shape_at(std::int64_t bytes, std::int64_t block_bytes, std::int64_t stride_bytes);

/// The plan of such blocks within `field_bytes` of memory, a power of two, from its first byte on.
/// Where there is no room for all of them, further rows of blocks begin in the gaps of the first
/// one, as far from each other as possible: no line of a cache is used twice where field_bytes is
/// that of the grid.
dtype::PackPlan plan_of(const PackShape& shape, std::int64_t field_bytes);

/// All points of the grid for one number of bytes: shapes that differ, and which of them stands at
/// each block (slowest) and stride.
struct PackLayer {
  std::vector<PackShape> shapes;
  std::vector<std::size_t> shape_at;
};
PackLayer pack_layer(const dtype::PackTable::Axes& axes, std::int64_t bytes);

/// For how many of the numbers of messages that many bytes each are measured: 1, and those that
/// together have at most bytes_at_once.
std::size_t numbers_for(const Grid& grid, std::int64_t bytes);

}  // namespace halocline::comm::detail
