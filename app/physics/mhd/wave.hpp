// SPDX-License-Identifier: BSD-3-Clause
// Follows circularly polarised waves, whose discrete solution is exact: a Beltrami field that
// decays, and an Alfven wave of finite amplitude.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>

#include "physics/mhd/mhd.hpp"

namespace halocline::app::mhd {

/// Holds a wave along one axis of a periodic box, in a gas of uniform density.
///
/// The two components across the axis form a complex number, amplitude * e^(i k x), for u and for
/// A. B^2, j^2 and all heating are uniform then, and no force acts along the axis. So seven numbers
/// hold the state of all fields, whatever the amplitude. They take the same Runge-Kutta steps.
class CircularWave {
 public:
  /// Makes a gas at rest without waves.
  CircularWave() = default;
  /// Makes the Beltrami field A = amplitude (sin z, cos z, 0), z in wavelengths of the box.
  static CircularWave beltrami(double spacing, double amplitude, const comm::Int3& points);
  /// Makes the wave A = amplitude (0, cos x, sin x) that travels along B0.
  static CircularWave alfven(const Parameters& parameters, double spacing, double amplitude,
                             const comm::Int3& points);

  /// Takes one step.
  void advance(const Parameters& parameters, double dt);

  /// Returns a field's value at a point with these global coordinates.
  double value(Field field, const comm::Int3& point, const Parameters& parameters) const;

  /// Is the number that deviations are compared with: the amplitude at the begin, or 1.
  double scale() const { return scale_; }
  /// Tells if the wave solves the equations: B0 has no component across the axis.
  bool is_exact(const Parameters& parameters) const;

  /// Holds u and A across the axis, A along it, and the entropy, as real numbers.
  using State = std::array<double, 6>;
  const State& state() const { return state_; }
  void set_state(const State& state) { state_ = state; }

 private:
  CircularWave(double spacing, std::size_t axis, int turns, const comm::Int3& points);
  State rates(const State& at, const Parameters& parameters) const;

  std::size_t axis_ = 0;
  std::int64_t points_ = 1;
  int turns_ = 0;      // 1 or -1, the sense of rotation
  double first_ = 0;   // k' of the first difference
  double second_ = 0;  // kappa of the second difference
  double scale_ = 1;
  State state_{};
};

}  // namespace halocline::app::mhd
