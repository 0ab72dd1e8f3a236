// SPDX-License-Identifier: BSD-3-Clause
// Measures the halo of [PEA21 section 6.4], with the layout of the app. A block of points^3 doubles
// or floats sends to its 26 neighbours, or receives from them. Radius 3; 8 fields with allocations
// of their own.
#include "dtype/bench/device/harness.hpp"

namespace halocline::dtype::bench {

namespace {

constexpr std::int64_t kRadius = 3, kFields = 8, kPage = 4096, kSectorBytes = 32;

struct Element {
  const char* name;
  std::int64_t bytes;
};
constexpr Element kDouble{"double", 8}, kFloat{"float", 4};

// Returns the halo of a block. With `padded`, rows begin after a gap and end at a sector, so that
// each row's points begin at a sector. Then the slabs next to the sides touch one sector a row
// instead of two.
DeviceCase halo_of(std::int64_t points, Direction direction, bool padded,
                   const Element& element = kDouble) {
  const auto side = points + 2 * kRadius;
  const auto in_sector = kSectorBytes / element.bytes;
  const auto left = padded ? in_sector - kRadius : 0;
  const auto pitch = padded ? (side + left + in_sector - 1) / in_sector * in_sector : side;
  const auto field_bytes = (side * side * pitch * element.bytes + kPage - 1) / kPage * kPage;
  // Regions that are sent lie inside of the block; regions that are received lie around it.
  const auto start = [&](int step) {
    if (step == 0) return kRadius;
    if (direction == Direction::pack) return step < 0 ? kRadius : points;
    return step < 0 ? 0 : points + kRadius;
  };
  const auto extent = [&](int step) { return step == 0 ? points : kRadius; };
  DeviceCase out{.name = std::string(direction == Direction::pack ? "pack-" : "unpack-") +
                         std::to_string(points) + (padded ? "-padded" : "") +
                         (element.bytes == kFloat.bytes ? "-float" : ""),
                 .direction = direction,
                 .parts = {},
                 .twins = {Twin::tempi, Twin::separate, Twin::memcpy3d},
                 .seconds = 0.5,
                 .parameters = {{"points", static_cast<double>(points)},
                                {"padded", padded ? 1 : 0},
                                {"element_bytes", static_cast<double>(element.bytes)}},
                 .targets = {{"vs_tempi", points == 32 ? 10 : 1.5}}};
  if (points == 256) out.targets.push_back({"of_copy", 1 / 1.25});
  for (int z = -1; z <= 1; ++z)
    for (int y = -1; y <= 1; ++y)
      for (int x = -1; x <= 1; ++x) {
        if (z == 0 && y == 0 && x == 0) continue;
        const auto region = type(Subarray{Order::c,
                                          {side, side, pitch},
                                          {extent(z), extent(y), extent(x)},
                                          {start(z), start(y), left + start(x)},
                                          named(element.name)});
        for (std::int64_t field = 0; field < kFields; ++field)
          out.parts.push_back({region, 1, field * field_bytes});
      }
  return out;
}

}  // namespace

std::vector<DeviceCase> device_halo(const DeviceOptions& options) {
  std::vector<DeviceCase> out;
  const auto sizes =
      options.smoke ? std::vector<std::int64_t>{12} : std::vector<std::int64_t>{32, 64, 128, 256};
  const auto add = [&](std::int64_t points, const Element& element) {
    for (const bool padded : {false, true})
      for (const auto direction : {Direction::pack, Direction::unpack})
        out.push_back(halo_of(points, direction, padded, element));
  };
  for (const auto points : sizes) add(points, kDouble);
  add(sizes.back(), kFloat);
  return out;
}

// Returns what a recording saves: for a pack and a copy, which exchanges record, and for a pack
// alone, which they do not record.
std::vector<DeviceBenchmark> device_graphs(const DeviceOptions& options) {
  std::vector<DeviceBenchmark> out;
  const auto sizes =
      options.smoke ? std::vector<std::int64_t>{12} : std::vector<std::int64_t>{16, 32, 64};
  for (const auto points : sizes)
    for (const bool staged : {true, false})
      for (const auto direction : {Direction::pack, Direction::unpack}) {
        auto one = halo_of(points, direction, false);
        one.packed = staged ? MemoryKind::pinned : MemoryKind::device;
        one.parameters.emplace_back("staged", staged ? 1 : 0);
        out.push_back({(staged ? "staged-" : "alone-") + one.name,
                       [one](DeviceHarness& harness) { return harness.measure_replay(one); }});
      }
  return out;
}

}  // namespace halocline::dtype::bench
