// SPDX-License-Identifier: BSD-3-Clause
#include "draw.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace halocline::app::mhd {

namespace {

using Vector = std::array<double, 3>;

Vector product(const Vector& a, const Vector& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

double length(const Vector& a) {
  return std::sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]);
}

std::mt19937_64 generator(std::int64_t seed, std::int64_t number) {
  const auto words = [](std::int64_t value, int shift) {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(value) >> shift);
  };
  std::seed_seq all{words(seed, 0), words(seed, 32), words(number, 0), words(number, 32)};
  return std::mt19937_64(all);
}

}  // namespace

Draw::Draw(std::int64_t seed, std::int64_t number) : random_(generator(seed, number)) {}

std::vector<comm::Int3> shell(double least, double most) {
  std::vector<comm::Int3> out;
  const auto reach = static_cast<std::int64_t>(most);
  for (auto z = -reach; z <= reach; ++z)
    for (auto y = -reach; y <= reach; ++y)
      for (auto x = -reach; x <= reach; ++x) {
        const auto squared = static_cast<double>(x * x + y * y + z * z);
        if (squared > 0 && squared >= least * least && squared <= most * most)
          out.push_back({x, y, z});
      }
  return out;
}

PlaneWave draw_wave(Draw& draw, const std::vector<comm::Int3>& vectors, const Sides& sides) {
  const auto index = static_cast<std::size_t>(draw() * static_cast<double>(vectors.size()));
  PlaneWave out;
  out.waves = vectors[index];
  Vector k{};
  for (std::size_t axis = 0; axis < 3; ++axis)
    k[axis] = 2 * std::numbers::pi * static_cast<double>(out.waves[axis]) / sides[axis];
  out.k = length(k);
  for (auto& component : k) component /= out.k;
  // The axis that is farthest from k gives a first vector across k.
  Vector axis{};
  const auto magnitude = [](double a, double b) { return std::abs(a) < std::abs(b); };
  axis[static_cast<std::size_t>(std::min_element(k.begin(), k.end(), magnitude) - k.begin())] = 1;
  auto first = product(k, axis);
  const double norm = length(first);
  for (auto& component : first) component /= norm;
  const auto second = product(k, first);
  const double turn = 2 * std::numbers::pi * draw();
  for (std::size_t i = 0; i < 3; ++i)
    out.e[i] = std::cos(turn) * first[i] + std::sin(turn) * second[i];
  out.ke = product(k, out.e);
  out.phase = 2 * std::numbers::pi * draw();
  return out;
}

}  // namespace halocline::app::mhd
