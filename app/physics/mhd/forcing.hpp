// SPDX-License-Identifier: BSD-3-Clause
// Stirs the gas: a helical force that is drawn anew for each step.
#pragma once

#include <Kokkos_Core.hpp>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "field_views.hpp"
#include "physics/mhd/draw.hpp"
#include "physics/mhd/mhd.hpp"

namespace halocline::app::mhd {

/// Holds the parameters of the force.
struct ForcingParameters {
  double strength = 0;  ///< f0; 0: no force
  double k_min = 0.8;   ///< smallest length of a wave vector, in waves across the box
  double k_max = 1.2;   ///< largest length
  double helicity = 0;  ///< 0: none; 1 or -1: the curl of the force is k times the force
  std::int64_t seed = 1;
};

/// Adds a wave to the velocity at the end of each step:
///   sqrt(dt) N Re(f e^(i (k x + phase))).
///   N = f0 cs0 sqrt(k cs0).
///   f = (e + i helicity (k x e) / k) / sqrt(1 + helicity^2), with a unit vector e across k.
///
/// Each step draws k, e and phase. They follow from seed and step alone. Astaroth has half the
/// difference of its limits as k in N, which vanishes for equal limits. Here k is the drawn one, as
/// in Brandenburg (2001). Astaroth rounds its k to whole waves, so some lie outside of the limits;
/// here all lie between them.
class Forcing {
 public:
  Forcing(const ForcingParameters& parameters, const Domain& domain,
          const std::array<double, 3>& spacing);

  /// Draws the wave of a step. Local.
  void prepare(std::int64_t step);

  /// Starts to add the force of the prepared step on the points of `boxes`, behind what is started
  /// on these fields already. Local.
  template <class T>
  void start(const Parameters& parameters, double dt, const FieldSet<T>& fields,
             std::span<const comm::Box> boxes) const;

 private:
  // Holds e^(i k x) for each stored x, y and z, one behind the other.
  template <class Space>
  using Waves = Kokkos::View<Kokkos::complex<double>*, typename Space::memory_space>;

  ForcingParameters parameters_;
  const Domain& domain_;
  std::array<double, 3> spacing_;
  std::vector<comm::Int3> vectors_;
  std::int64_t prepared_ = -1;  // step of the wave
  PlaneWave wave_{};
  Waves<HostSpace> waves_;
  Waves<DeviceSpace> waves_on_device_;
};

}  // namespace halocline::app::mhd
