// SPDX-License-Identifier: BSD-3-Clause
#include "initial.hpp"

#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "physics/mhd/draw.hpp"
#include "physics/mhd/parameters.hpp"

namespace halocline::app::mhd {

namespace {

// Returns an angle that grows by 2 pi over `size` points.
double turns(std::int64_t point, std::int64_t size) {
  return 2 * std::numbers::pi * static_cast<double>(point) / static_cast<double>(size);
}

// Returns smooth waves in all fields, which decay and become turbulent.
InitialState smooth_waves(double a, const comm::Int3& points) {
  return [=](Field field, const comm::Int3& point) {
    const double x = turns(point[0], points[0]), y = turns(point[1], points[1]);
    const double z = turns(point[2], points[2]);
    switch (field) {
      case kLnRho:
        return a * std::sin(x + y) + a / 2 * std::cos(y - z);
      case kUx:
        return a * std::sin(y + z + .3) + a * std::cos(x);
      case kUy:
        return a * std::cos(z + x + .7) + a * std::sin(y + .2);
      case kUz:
        return a * std::sin(x + y + 1.1) + a * std::sin(z + .5);
      case kAx:
        return a * std::sin(y + z + .2);
      case kAy:
        return a * std::cos(x + z);
      case kAz:
        return a * std::sin(x - y + .4);
      default:
        return a / 2 * std::sin(x + z);
    }
  };
}

// Returns a velocity that points away from the middle of the box, largest on a shell around it.
InitialState radial_explosion(const Config& config, const comm::Int3& points) {
  const double speed = parameter(config, "amplitude"), h = parameter(config, "spacing");
  const double radius = parameter(config, "shell-radius"), width = parameter(config, "shell-width");
  const double lnrho0 = parameter(config, "lnrho0");
  return [=](Field field, const comm::Int3& point) {
    if (field == kLnRho) return lnrho0;
    if (field < kUx || field > kUz) return 0.0;
    std::array<double, 3> from_middle;
    for (std::size_t axis = 0; axis < 3; ++axis)
      from_middle[axis] =
          h * (static_cast<double>(point[axis]) - static_cast<double>(points[axis]) / 2);
    const double r = std::hypot(from_middle[0], from_middle[1], from_middle[2]);
    if (r == 0) return 0.0;
    const double off = (r - radius) / width;
    return speed * std::exp(-off * off / 2) * from_middle[static_cast<std::size_t>(field - kUx)] /
           r;
  };
}

// Returns large eddies of random waves without divergence, in velocity and field. The root mean
// square of the velocity is about the amplitude, and that of the field about the same.
InitialState random_waves(const Config& config, const comm::Int3& points) {
  constexpr int kWaves = 16;
  const double h = parameter(config, "spacing"), lnrho0 = parameter(config, "lnrho0");
  const double amplitude = parameter(config, "amplitude") * std::sqrt(2.0 / kWaves);
  Sides sides;
  for (std::size_t axis = 0; axis < 3; ++axis) sides[axis] = h * static_cast<double>(points[axis]);
  const auto vectors = shell(1, 3);
  std::array<std::vector<PlaneWave>, 2> all;  // of velocity and potential
  for (std::size_t i = 0; i < all.size(); ++i) {
    Draw draw(config.seed, -1 - static_cast<std::int64_t>(i));  // steps have other numbers
    for (int wave = 0; wave < kWaves; ++wave) all[i].push_back(draw_wave(draw, vectors, sides));
  }
  return [=](Field field, const comm::Int3& point) {
    if (field == kLnRho) return lnrho0;
    if (field == kS) return 0.0;
    const bool is_velocity = field < kAx;
    const auto component = static_cast<std::size_t>(field - kUx) % 3;
    double sum = 0;
    for (const auto& wave : all[is_velocity ? 0 : 1]) {
      double angle = wave.phase;
      for (std::size_t axis = 0; axis < 3; ++axis)
        angle += static_cast<double>(wave.waves[axis]) * turns(point[axis], points[axis]);
      sum += wave.e[component] * std::cos(angle) / (is_velocity ? 1 : wave.k);
    }
    return amplitude * sum;
  };
}

Initial initial_of(const Config& config) {
  return static_cast<Initial>(parameter(config, "initial"));
}

}  // namespace

InitialState initial_state(const Config& config, const comm::Int3& points) {
  switch (initial_of(config)) {
    case Initial::waves:
      return smooth_waves(parameter(config, "amplitude"), points);
    case Initial::explosion:
      return radial_explosion(config, points);
    case Initial::random:
      return random_waves(config, points);
    default:
      return [wave = *exact_solution(config, points), p = parameters_of(config)](
                 Field field, const comm::Int3& point) { return wave.value(field, point, p); };
  }
}

std::optional<CircularWave> exact_solution(const Config& config, const comm::Int3& points) {
  const auto p = parameters_of(config);
  const double h = parameter(config, "spacing"), amplitude = parameter(config, "amplitude");
  switch (initial_of(config)) {
    case Initial::beltrami:
      return CircularWave::beltrami(h, amplitude, points);
    case Initial::alfven:
      return CircularWave::alfven(p, h, amplitude, points);
    case Initial::uniform:
      return CircularWave();
    default:
      return std::nullopt;
  }
}

}  // namespace halocline::app::mhd
