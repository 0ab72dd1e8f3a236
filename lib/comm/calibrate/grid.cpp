// SPDX-License-Identifier: BSD-3-Clause
#include "comm/calibrate/grid.hpp"

#include <algorithm>
#include <bit>

#include "dtype/type_expr.hpp"

namespace halocline::comm::detail {

namespace {

constexpr auto kKi = std::int64_t{1} << 10, kMi = std::int64_t{1} << 20;

// Gives each block of the smallest size a cache line, times two, since rows are cut to powers of
// two.
constexpr std::int64_t kFieldsPerPacked = 16;

std::vector<std::int64_t> sizes(std::int64_t first, std::int64_t last, std::int64_t growth) {
  std::vector<std::int64_t> out;
  for (auto size = first; size <= last; size *= growth) out.push_back(size);
  return out;
}

std::vector<std::int64_t> message_sizes(std::int64_t last, std::int64_t growth) {
  auto out = sizes(64, last, growth);
  out.insert(out.begin(), 1);
  return out;
}

}  // namespace

Grid make_grid(double seconds) {
  // A halo has 26 messages at once. Blocks are a double, rows of one radius or several fields, and
  // pencils. Long strides are a cache line longer than a power of two, as in fields with ghosts.
  // Otherwise all blocks would share a few sets of a cache.
  if (seconds < kFullGridSeconds)
    return {
        .message_bytes = message_sizes(4 * kMi, 16),
        .messages_at_once = {1, 4, 26},
        .bytes_at_once = 8 * kMi,  // enough for a bandwidth of 26 messages
        .copy_bytes = sizes(64, 4 * kMi, 16),
        .packs = {{64, kKi, 32 * kKi, kMi}, {8, 128, 2 * kKi}, {16, 512 + kLine, 16 * kKi + kLine}},
        .strided_blocks = {{kKi, 16 * kKi, 256 * kKi}, {8, 32, 128}, {16, 2 * kKi + kLine}},
        .listed_blocks = {{kKi, 16 * kKi, 256 * kKi}, {8, 128}, {16, 256}},
        .bytes_growth = 16};
  return {.message_bytes = message_sizes(64 * kMi, 4),
          .messages_at_once = {1, 2, 4, 8, 16, 26},
          .bytes_at_once = 64 * kMi,
          .copy_bytes = sizes(64, 64 * kMi, 4),
          .packs = {sizes(64, 16 * kMi, 4),
                    {8, 32, 128, 512, 2 * kKi, 16 * kKi},
                    {16, 64, 256, 2 * kKi + kLine, 16 * kKi + kLine, 128 * kKi + kLine}},
          .strided_blocks = {sizes(kKi, 4 * kMi, 4),
                             {4, 8, 32, 128},
                             {16, 64, 256, 2 * kKi + kLine, 16 * kKi + kLine}},
          .listed_blocks = {sizes(kKi, kMi, 4), {4, 8, 32, 128}, {16, 64, 256}},
          .bytes_growth = 4};
}

std::int64_t field_bytes(const dtype::PackTable::Axes& axes) {
  return kFieldsPerPacked * axes.bytes.back();
}

PackShape shape_at(std::int64_t bytes, std::int64_t block_bytes, std::int64_t stride_bytes,
                   std::int64_t least_strides) {
  const auto block = std::min(block_bytes, bytes);
  return {bytes, block, block == bytes ? block : std::max(stride_bytes, least_strides * block)};
}

dtype::TypeExprPtr type_of(const PackShape& shape, std::int64_t field_bytes) {
  const auto blocks = shape.bytes / shape.block_bytes;
  const auto room = static_cast<std::uint64_t>(field_bytes / shape.stride_bytes);
  const auto row = std::min(static_cast<std::int64_t>(std::bit_floor(room)), blocks);
  const auto rows = blocks / row;
  const auto shift = shape.stride_bytes / rows / kLine * kLine;
  using dtype::Hvector, dtype::type;
  return type(
      Hvector{rows, 1, shift,
              type(Hvector{row, shape.block_bytes, shape.stride_bytes, dtype::named("byte")})});
}

PackLayer pack_layer(const dtype::PackTable::Axes& axes, std::int64_t bytes,
                     std::int64_t least_strides) {
  PackLayer out;
  for (const auto block : axes.block_bytes)
    for (const auto stride : axes.stride_bytes) {
      const auto shape = shape_at(bytes, block, stride, least_strides);
      const auto found = std::find(out.shapes.begin(), out.shapes.end(), shape);
      out.shape_at.push_back(static_cast<std::size_t>(found - out.shapes.begin()));
      if (found == out.shapes.end()) out.shapes.push_back(shape);
    }
  return out;
}

std::size_t numbers_for(const Grid& grid, std::int64_t bytes) {
  return static_cast<std::size_t>(std::count_if(
      grid.messages_at_once.begin(), grid.messages_at_once.end(),
      [&](auto messages) { return messages == 1 || messages * bytes <= grid.bytes_at_once; }));
}

}  // namespace halocline::comm::detail
