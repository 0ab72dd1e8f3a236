// SPDX-License-Identifier: BSD-3-Clause
// Chooses the points at which a machine is measured.
//
// Best peer: [PEA21 section 6.3, figure 10] packs 64 B to 4 MiB of blocks at one stride. Here
// strides are an axis, and blocks lie in memory that does not fit into a cache.
#pragma once

#include <cstdint>
#include <vector>

#include "dtype/model/time_table.hpp"
#include "dtype/type_expr.hpp"

namespace halocline::comm::detail {

/// Is the length of a cache line, in bytes.
inline constexpr std::int64_t kLine = 64;

/// Holds the sizes to measure, in bytes. Sizes of messages, packed bytes and blocks are powers of
/// two.
struct Grid {
  std::vector<std::int64_t> message_bytes;
  std::vector<std::int64_t> messages_at_once;
  std::int64_t bytes_at_once;  ///< largest total of several messages
  std::vector<std::int64_t> copy_bytes;
  dtype::PackTable::Axes packs;
  dtype::PackTable::Axes strided_blocks, listed_blocks;  ///< of messages of blocks with gaps
  std::int64_t bytes_growth;  ///< approximate factor from a size to the next
};

/// Is the shortest calibration, in seconds, with a full grid.
inline constexpr double kFullGridSeconds = 10;
/// Returns the grid for a calibration of `seconds`: a coarse grid below kFullGridSeconds.
Grid make_grid(double seconds);

/// Returns the bytes of memory in which the blocks lie, for any block and stride of `axes`.
std::int64_t field_bytes(const dtype::PackTable::Axes& axes);

/// Describes blocks that are packed: bytes in total, bytes of a block, and bytes from a block to
/// the next.
struct PackShape {
  std::int64_t bytes, block_bytes, stride_bytes;
  bool operator==(const PackShape&) const = default;
};

/// Returns the shape that a point of a table stands for. A block is not longer than the bytes, and
/// a stride is not shorter than `least_strides` blocks.
PackShape shape_at(std::int64_t bytes, std::int64_t block_bytes, std::int64_t stride_bytes,
                   std::int64_t least_strides = 1);

/// Returns the type of blocks of `shape` from the begin of `field_bytes` bytes of memory, a power
/// of two.
///
/// A row that has no room for all blocks is followed by rows in its gaps, as far from each other as
/// possible. With the grid's own field_bytes, no cache line is used twice.
dtype::TypeExprPtr type_of(const PackShape& shape, std::int64_t field_bytes);

/// Holds all points of the grid for one number of bytes. shape_at is the index into shapes for each
/// block (slowest) and stride, since several points may have one shape.
struct PackLayer {
  std::vector<PackShape> shapes;
  std::vector<std::size_t> shape_at;
};
PackLayer pack_layer(const dtype::PackTable::Axes& axes, std::int64_t bytes,
                     std::int64_t least_strides = 1);

/// Returns how many entries of messages_at_once are measured for messages of `bytes` bytes. These
/// are 1 and all entries whose messages together have at most bytes_at_once.
std::size_t numbers_for(const Grid& grid, std::int64_t bytes);

}  // namespace halocline::comm::detail
