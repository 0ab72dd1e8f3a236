// SPDX-License-Identifier: BSD-3-Clause
// Measures the 2-D objects of [PEA21], figures 8 and 10.
#include <algorithm>

#include "dtype/bench/device/harness.hpp"

namespace halocline::dtype::bench {

namespace {

constexpr std::int64_t kPitch = 512;
constexpr std::int64_t kMaxSpan = std::int64_t{1} << 31;  // leaves room for the host's copy

std::string bytes_name(std::int64_t bytes) {
  for (const auto& [unit, suffix] : {std::pair(1 << 20, "MiB"), std::pair(1 << 10, "KiB")})
    if (bytes % unit == 0) return std::to_string(bytes / unit) + suffix;
  return std::to_string(bytes) + "B";
}

// Returns `rows` blocks, one at the begin of each pitch.
TypeExprPtr as_vector(std::int64_t rows, std::int64_t block, std::int64_t pitch) {
  return type(Hvector{rows, block, pitch, named("byte")});
}
TypeExprPtr as_subarray(std::int64_t rows, std::int64_t block, std::int64_t pitch) {
  return type(Subarray{Order::c, {rows, pitch}, {rows, block}, {0, 0}, named("byte")});
}

struct Object {
  TypeExprPtr type;
  std::int64_t bytes, block, pitch, count;
};

DeviceCase object_case(const Object& object, Direction direction, MemoryKind packed,
                       std::string name) {
  name += std::string(direction == Direction::pack ? "-pack-" : "-unpack-") +
          bytes_name(object.bytes) + "-b" + std::to_string(object.block);
  return {.name = std::move(name),
          .direction = direction,
          .packed = packed,
          .parts = {{object.type, object.count}},
          .twins = {},
          .parameters = {{"object_bytes", static_cast<double>(object.bytes)},
                         {"block_bytes", static_cast<double>(object.block)},
                         {"stride_bytes", static_cast<double>(object.pitch)},
                         {"count", static_cast<double>(object.count)}}};
}

bool fits(std::int64_t bytes, std::int64_t block, std::int64_t pitch, std::int64_t count) {
  return bytes % block == 0 && bytes / block * pitch * count <= kMaxSpan;
}

}  // namespace

std::vector<DeviceCase> fig8(const DeviceOptions& options) {
  std::vector<DeviceCase> out;
  const auto sizes = options.smoke ? std::vector<std::int64_t>{1024}
                                   : std::vector<std::int64_t>{1024, 1 << 20, 1 << 22};
  for (const auto bytes : sizes)
    for (const std::int64_t count : {1, 2})
      for (const bool vector : {true, false})
        for (const auto direction : {Direction::pack, Direction::unpack})
          for (std::int64_t block = 1; block <= kPitch; block *= 2) {
            if (!fits(bytes, block, kPitch, count)) continue;
            const auto rows = bytes / block;
            const auto made =
                vector ? as_vector(rows, block, kPitch) : as_subarray(rows, block, kPitch);
            auto one =
                object_case({made, bytes, block, kPitch, count}, direction, MemoryKind::device,
                            (vector ? "vector-x" : "subarray-x") + std::to_string(count));
            one.twins = {Twin::tempi, Twin::mpi};
            // Both descriptions have the same bytes: one is enough for these twins.
            if (vector) one.twins.insert(one.twins.end(), {Twin::memcpy3d, Twin::blocks});
            out.push_back(std::move(one));
          }
  return out;
}

std::vector<DeviceCase> fig10(const DeviceOptions& options) {
  std::vector<DeviceCase> out;
  const std::int64_t largest = options.smoke ? 4096 : 1 << 22;
  for (const auto packed : {MemoryKind::device, MemoryKind::pinned})
    for (const auto direction : {Direction::pack, Direction::unpack})
      for (const bool twice : {true, false})
        for (std::int64_t bytes = 64; bytes <= largest; bytes *= 4)
          for (std::int64_t block = 1; block <= kPitch; block *= 2) {
            const auto pitch = twice ? 2 * block : kPitch;
            if (!fits(bytes, block, pitch, 1)) continue;
            auto one = object_case(
                {as_vector(bytes / block, block, pitch), bytes, block, pitch, 1}, direction, packed,
                std::string(packed == MemoryKind::device ? "device" : "one-shot") +
                    (twice ? "-2x" : "-512"));
            one.twins = {Twin::tempi};
            one.seconds = 0.03;
            out.push_back(std::move(one));
          }
  return out;
}

}  // namespace halocline::dtype::bench
