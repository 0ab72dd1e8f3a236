// SPDX-License-Identifier: BSD-3-Clause
// Measures layouts that are not strided, or not in the order of their strides. They are index lists
// as in LAMMPS, structs with gaps, and transposes.
#include <algorithm>
#include <numeric>
#include <random>

#include "dtype/bench/device/harness.hpp"

namespace halocline::dtype::bench {

namespace {

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

std::vector<DeviceCase> device_lists(const DeviceOptions& options) {
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
    for (const auto direction : {Direction::pack, Direction::unpack})
      out.push_back(
          {.name = std::string(name) + (direction == Direction::pack ? "-pack" : "-unpack"),
           .direction = direction,
           .parts = {part},
           .twins = {Twin::gather, Twin::blocks},
           .seconds = 0.3});
  return out;
}

}  // namespace halocline::dtype::bench
