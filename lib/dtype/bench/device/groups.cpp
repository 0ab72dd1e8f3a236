// SPDX-License-Identifier: BSD-3-Clause
// Defines the groups of bench_device.
#include <algorithm>
#include <numeric>
#include <random>

#include "dtype/bench/device/harness.hpp"

namespace halocline::dtype::bench {

// Measures the scale of all other groups: plain copies and empty launches. Also measures finding
// out the kind of memory of an address.
std::vector<Benchmark> device_copies(DeviceHarness& harness) {
  const auto& options = harness.options();
  constexpr std::int64_t kMebi = 1 << 20;
  std::vector<Benchmark> out = {
      {"empty-kernel", [&harness] { return harness.measure_empty_kernel(); }}};
  for (const auto kind : {MemoryKind::host, MemoryKind::pinned, MemoryKind::device})
    out.push_back({std::string("kind-of-") + name(kind),
                   [=, &harness] { return harness.measure_kind_of(kind); }});
  const auto add = [&](const std::string& what, CopyDirection direction, MemoryKind packed,
                       std::int64_t most) {
    if (options.smoke) most = 1;
    for (std::int64_t mebi = options.quick ? most : 1; mebi <= most; mebi *= 2)
      out.push_back({what + "-" + std::to_string(mebi) + "MiB", [=, &harness] {
                       return harness.measure_copy(direction, packed, mebi * kMebi);
                     }});
  };
  add("device", CopyDirection::pack, MemoryKind::device, 512);
  add("to-host", CopyDirection::pack, MemoryKind::pinned, 64);
  add("from-host", CopyDirection::unpack, MemoryKind::pinned, 64);
  return out;
}

namespace {

// ---- fig8 and fig10: the 2-D objects of [PEA21] ----

constexpr std::int64_t kPitch = 512;
constexpr std::int64_t kMaxSpan = std::int64_t{1} << 31;  // leaves room for the host's copy

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

DeviceCase object_case(const Object& object, CopyDirection direction, MemoryKind packed,
                       std::string name) {
  name += std::string(direction == CopyDirection::pack ? "-pack-" : "-unpack-") +
          name_of_bytes(object.bytes) + "-b" + std::to_string(object.block);
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

std::vector<DeviceCase> fig8(const Options& options) {
  std::vector<DeviceCase> out;
  const auto sizes = options.smoke ? std::vector<std::int64_t>{1024}
                                   : std::vector<std::int64_t>{1024, 1 << 20, 1 << 22};
  for (const auto bytes : sizes)
    for (const std::int64_t count : {1, 2})
      for (const bool vector : {true, false})
        for (const auto direction : {CopyDirection::pack, CopyDirection::unpack})
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

std::vector<DeviceCase> fig10(const Options& options) {
  std::vector<DeviceCase> out;
  const std::int64_t largest = options.smoke ? 4096 : 1 << 22;
  for (const auto packed : {MemoryKind::device, MemoryKind::pinned})
    for (const auto direction : {CopyDirection::pack, CopyDirection::unpack})
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

namespace {

// ---- halo and graph: the halo of [PEA21 section 6.4], with the layout of the app. A block of
// points^3 doubles or floats sends to its 26 neighbours, or receives from them. Radius 3; 8 fields
// with allocations of their own. ----

constexpr std::int64_t kRadius = 3, kFields = 8, kPage = 4096, kSectorBytes = 32;

struct Element {
  const char* name;
  std::int64_t bytes;
};
constexpr Element kDouble{"double", 8}, kFloat{"float", 4};

// Returns the halo of a block. With `padded`, rows begin after a gap and end at a sector, so that
// each row's points begin at a sector. Then the slabs next to the sides touch one sector a row
// instead of two.
DeviceCase halo_of(std::int64_t points, CopyDirection direction, bool padded,
                   const Element& element = kDouble) {
  const auto side = points + 2 * kRadius;
  const auto in_sector = kSectorBytes / element.bytes;
  const auto left = padded ? in_sector - kRadius : 0;
  const auto pitch = padded ? (side + left + in_sector - 1) / in_sector * in_sector : side;
  const auto field_bytes = (side * side * pitch * element.bytes + kPage - 1) / kPage * kPage;
  // Regions that are sent lie inside of the block; regions that are received lie around it.
  const auto start = [&](int step) {
    if (step == 0) return kRadius;
    if (direction == CopyDirection::pack) return step < 0 ? kRadius : points;
    return step < 0 ? 0 : points + kRadius;
  };
  const auto extent = [&](int step) { return step == 0 ? points : kRadius; };
  DeviceCase out{.name = std::string(direction == CopyDirection::pack ? "pack-" : "unpack-") +
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

std::vector<DeviceCase> device_halo(const Options& options) {
  std::vector<DeviceCase> out;
  const auto sizes =
      options.smoke ? std::vector<std::int64_t>{12} : std::vector<std::int64_t>{32, 64, 128, 256};
  const auto add = [&](std::int64_t points, const Element& element) {
    for (const bool padded : {false, true})
      for (const auto direction : {CopyDirection::pack, CopyDirection::unpack})
        out.push_back(halo_of(points, direction, padded, element));
  };
  for (const auto points : sizes) add(points, kDouble);
  add(sizes.back(), kFloat);
  return out;
}

// Returns what a recording saves: for a pack and a copy, which exchanges record, and for a pack
// alone, which they do not record.
std::vector<Benchmark> device_graphs(DeviceHarness& harness) {
  const auto& options = harness.options();
  std::vector<Benchmark> out;
  const auto sizes =
      options.smoke ? std::vector<std::int64_t>{12} : std::vector<std::int64_t>{16, 32, 64};
  for (const auto points : sizes)
    for (const bool staged : {true, false})
      for (const auto direction : {CopyDirection::pack, CopyDirection::unpack}) {
        auto one = halo_of(points, direction, false);
        one.packed = staged ? MemoryKind::pinned : MemoryKind::device;
        one.parameters.emplace_back("staged", staged ? 1 : 0);
        out.push_back({(staged ? "staged-" : "alone-") + one.name,
                       [one, &harness] { return harness.measure_replay(one); }});
      }
  return out;
}

namespace {

// ---- lists: layouts that are not strided, or not in the order of their strides ----

using List = std::vector<std::int64_t>;

// Returns `n` different places out of 4 * n, in no order.
List random_places(std::int64_t n) {
  List places(static_cast<std::size_t>(4 * n));
  std::iota(places.begin(), places.end(), 0);
  std::shuffle(places.begin(), places.end(), std::mt19937_64(1));
  places.resize(static_cast<std::size_t>(n));
  return places;
}

List scaled(List list, std::int64_t factor) {
  for (auto& value : list) value *= factor;
  return list;
}

TypeExprPtr changing_lengths(std::int64_t n, std::int64_t longest) {
  std::mt19937_64 random(2);
  List lengths(static_cast<std::size_t>(n));
  for (auto& length : lengths)
    length = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(longest));
  return type(Indexed{std::move(lengths), scaled(random_places(n), longest), named("double")});
}

TypeExprPtr transpose(std::int64_t n, const char* element, std::int64_t bytes) {
  return type(Hvector{n, 1, bytes, type(Vector{n, 1, n, named(element)})});
}

}  // namespace

std::vector<DeviceCase> device_lists(const Options& options) {
  const std::int64_t blocks = options.smoke ? 300 : 100000, side = options.smoke ? 40 : 1024;
  const auto of_doubles = [&](std::int64_t width) {
    return type(IndexedBlock{width, scaled(random_places(blocks), width), named("double")});
  };
  // struct { double position[3]; float charge; int id; char tag[3]; }
  const auto particle =
      parse_type("resized(struct({3,1,1,3},{0,24,28,32},{double,float,int,char}),0,40)");
  const std::pair<const char*, Part> layouts[] = {
      {"random-8", {of_doubles(1)}},
      {"random-40", {of_doubles(5)}},
      {"changing-lengths", {changing_lengths(blocks, 16)}},
      {"struct-particle", {particle, blocks}},
      {"transpose-double", {transpose(side, "double", 8)}},
      {"transpose-float", {transpose(side, "float", 4)}}};
  std::vector<DeviceCase> out;
  for (const auto& [name, part] : layouts)
    for (const auto direction : {CopyDirection::pack, CopyDirection::unpack})
      out.push_back(
          {.name = std::string(name) + (direction == CopyDirection::pack ? "-pack" : "-unpack"),
           .direction = direction,
           .parts = {part},
           .twins = {Twin::gather, Twin::blocks},
           .seconds = 0.3});
  return out;
}

}  // namespace halocline::dtype::bench
