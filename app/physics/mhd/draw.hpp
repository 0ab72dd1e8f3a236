// SPDX-License-Identifier: BSD-3-Clause
// Draws random waves. The numbers follow from the seeds alone, on every machine and rank.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "comm/halo/halo_spec.hpp"

namespace halocline::app::mhd {

/// Is the side of a box along x, y and z.
using Sides = std::array<double, 3>;

/// Draws numbers one after the other.
class Draw {
 public:
  Draw(std::int64_t seed, std::int64_t number);
  /// Returns a number from 0 on and below 1. The distributions of the standard library differ
  /// between libraries.
  double operator()() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

 private:
  std::mt19937_64 random_;
};

/// Returns all wave vectors with a length from `least` to `most`, in waves across the box.
std::vector<comm::Int3> shell(double least, double most);

/// Holds a plane wave across its wave vector.
struct PlaneWave {
  comm::Int3 waves{};          ///< across the box along each axis
  double k = 0;                ///< length of the wave vector (1 / length)
  double phase = 0;            ///< radians
  std::array<double, 3> e{};   ///< unit vector across the wave vector
  std::array<double, 3> ke{};  ///< cross product of the wave vector's direction and e
};

/// Draws one of `vectors`, a phase and a direction, each value as likely as any other.
PlaneWave draw_wave(Draw& draw, const std::vector<comm::Int3>& vectors, const Sides& sides);

}  // namespace halocline::app::mhd
