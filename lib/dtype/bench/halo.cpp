// SPDX-License-Identifier: BSD-3-Clause
// Measures the slabs that a block of points^3 doubles sends to its 26 neighbours, radius 3. They
// are packed one by one, all 26 with one plan each, and all 26 as one fused plan.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "harness.hpp"
#include "slab.hpp"

namespace halocline::dtype::bench {

namespace {

struct Slab {
  std::int64_t points, z, y, x;
  int shape;

  std::int64_t side() const { return points + 2 * kRadius; }
  std::int64_t start() const { return (z * side() + y) * side() + x; }
  std::int64_t extent(int axis) const { return shape >> axis & 1 ? kRadius : points; }
};

template <int kShape, class Move>
double* move_slab(const Slab& slab, Move move, double* __restrict memory,
                  double* __restrict packed) {
  const auto side = slab.side();
  const auto nz = extent_of<(kShape & 1) != 0>(slab.points);
  const auto ny = extent_of<(kShape & 2) != 0>(slab.points);
  const auto nx = extent_of<(kShape & 4) != 0>(slab.points);
  memory += slab.start();
  for (std::int64_t z = 0; z < nz; ++z)
    for (std::int64_t y = 0; y < ny; ++y, packed += nx)
      for (std::int64_t x = 0; x < nx; ++x) move(memory[(z * side + y) * side + x], packed[x]);
  return packed;
}

Method one_slab(const Slab& slab) {
  return with_shape(slab.shape, [&](auto shape) {
    return by_hand<double>([slab](auto move, double* memory, double* packed) {
      move_slab<decltype(shape)::value>(slab, move, memory, packed);
    });
  });
}

Method all_slabs(const std::vector<Slab>& slabs) {
  return by_hand<double>([slabs](auto move, double* memory, double* packed) {
    for (const auto& slab : slabs)
      packed = with_shape(slab.shape, [&](auto shape) {
        return move_slab<decltype(shape)::value>(slab, move, memory, packed);
      });
  });
}

TypeExprPtr datatype(const Slab& slab) {
  return type(Subarray{Order::c,
                       {slab.side(), slab.side(), slab.side()},
                       {slab.extent(0), slab.extent(1), slab.extent(2)},
                       {slab.z, slab.y, slab.x},
                       named("double")});
}

// Returns a name such as "face-xlo", "edge-zlo-yhi" or "corner-zlo-yhi-xlo".
std::string name_of(int z, int y, int x) {
  constexpr std::array kKinds = {"face", "edge", "corner"};
  std::string axes;
  for (const auto& [axis, direction] : {std::pair("-z", z), std::pair("-y", y), std::pair("-x", x)})
    if (direction != 0) axes += std::string(axis) + (direction < 0 ? "lo" : "hi");
  return kKinds[axes.size() / 4 - 1] + axes;
}

}  // namespace

std::vector<Case> halo(const Options& options) {
  std::vector<Slab> slabs;
  std::vector<Part> parts;
  std::vector<Case> cases;
  const auto points = options.points;
  for (int z = -1; z <= 1; ++z)
    for (int y = -1; y <= 1; ++y)
      for (int x = -1; x <= 1; ++x) {
        if (z == 0 && y == 0 && x == 0) continue;
        const auto start = [&](int direction) { return direction > 0 ? points : kRadius; };
        const int shape = (z != 0 ? 1 : 0) | (y != 0 ? 2 : 0) | (x != 0 ? 4 : 0);
        slabs.push_back({points, start(z), start(y), start(x), shape});
        parts.push_back({datatype(slabs.back())});
        cases.push_back({name_of(z, y, x), {parts.back()}, one_slab(slabs.back())});
      }
  const auto hand = all_slabs(slabs);
  cases.push_back({"all-26-one-by-one", parts, hand});
  cases.push_back({"all-26-fused", parts, hand, Mode::fused});
  return cases;
}

}  // namespace halocline::dtype::bench
