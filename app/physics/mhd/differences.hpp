// SPDX-License-Identifier: BSD-3-Clause
// Gives the sixth-order differences of the eight fields at a point.
//
// First derivatives: (3/4, -3/20, 1/60). Second: (-49/18; 3/2, -3/20, 1/90). Mixed: 12 points on
// the diagonals with (270, -27, 2) / 720, the "bidiagonal" formula of Astaroth. It reads the ghosts
// of edges, and those of no corner. Upwinding: sixth differences (-20, 15, -6, 1) / 60.
#pragma once

#include <Kokkos_Core.hpp>
#include <array>
#include <cstddef>
#include <cstdint>

#include "physics/lanes.hpp"
#include "physics/mhd/equations.hpp"

namespace halocline::app::mhd {

/// Lists the fields in their order. kShock has no equation: it is the viscosity near shocks.
enum Field : int { kLnRho, kUx, kUy, kUz, kAx, kAy, kAz, kS, kFields, kShock = kFields };

inline constexpr int kRadius = 3;

/// Holds the weights of all differences, already divided by the spacing.
template <class T>
struct Weights {
  T first[3][3];   ///< axis; distance 1, 2, 3
  T second[3][4];  ///< axis; distance 0, 1, 2, 3
  T mixed[3][3];   ///< axes xy, xz, yz; distance 1, 2, 3
  T upwind[3][4];  ///< axis; distance 0, 1, 2, 3
};

/// Returns the weights for points `spacing` apart along x, y and z.
template <class T>
Weights<T> weights(const std::array<double, 3>& spacing) {
  constexpr double kFirst[] = {3.0 / 4, -3.0 / 20, 1.0 / 60};
  constexpr double kSecond[] = {-49.0 / 18, 3.0 / 2, -3.0 / 20, 1.0 / 90};
  constexpr double kMixed[] = {270.0 / 720, -27.0 / 720, 2.0 / 720};
  constexpr double kUpwind[] = {-20.0 / 60, 15.0 / 60, -6.0 / 60, 1.0 / 60};
  constexpr std::size_t kPairs[][2] = {{0, 1}, {0, 2}, {1, 2}};
  Weights<T> out;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double h = spacing[axis];
    for (int k = 0; k < 3; ++k) out.first[axis][k] = static_cast<T>(kFirst[k] / h);
    for (int k = 0; k < 4; ++k) out.second[axis][k] = static_cast<T>(kSecond[k] / (h * h));
    for (int k = 0; k < 4; ++k) out.upwind[axis][k] = static_cast<T>(kUpwind[k] / h);
  }
  for (std::size_t pair = 0; pair < 3; ++pair) {
    const double area = spacing[kPairs[pair][0]] * spacing[kPairs[pair][1]];
    for (int k = 0; k < 3; ++k) out.mixed[pair][k] = static_cast<T>(kMixed[k] / area);
  }
  return out;
}

/// Reads a field around a point. The point at distance d along an axis is d strides away.
template <class V>
struct Around {
  const ScalarOf<V>* at;
  KOKKOS_FORCEINLINE_FUNCTION V operator[](std::int64_t offset) const {
    return load<V>(at + offset);
  }
};

/// Holds the elements from a point to the next one along each axis.
struct Strides {
  std::int64_t x, y, z;
};

template <class V, class T>
KOKKOS_FORCEINLINE_FUNCTION V first(Around<V> f, std::int64_t s, const T (&w)[3]) {
  return w[0] * (f[s] - f[-s]) + w[1] * (f[2 * s] - f[-2 * s]) + w[2] * (f[3 * s] - f[-3 * s]);
}

/// Returns the sum of symmetric pairs: the second difference, or the sixth with other weights.
template <class V, class T>
KOKKOS_FORCEINLINE_FUNCTION V second(Around<V> f, std::int64_t s, const T (&w)[4]) {
  return w[0] * f[0] + w[1] * (f[s] + f[-s]) + w[2] * (f[2 * s] + f[-2 * s]) +
         w[3] * (f[3 * s] + f[-3 * s]);
}

template <class V, class T>
KOKKOS_FORCEINLINE_FUNCTION V mixed(Around<V> f, std::int64_t a, std::int64_t b, const T (&w)[3]) {
  const auto p = a + b, m = a - b;
  return w[0] * ((f[p] + f[-p]) - (f[m] + f[-m])) +
         w[1] * ((f[2 * p] + f[-2 * p]) - (f[2 * m] + f[-2 * m])) +
         w[2] * ((f[3 * p] + f[-3 * p]) - (f[3 * m] + f[-3 * m]));
}

template <class V, class T>
KOKKOS_FORCEINLINE_FUNCTION Vec3<V> gradient(Around<V> f, const Strides& s, const Weights<T>& w) {
  return {first(f, s.x, w.first[0]), first(f, s.y, w.first[1]), first(f, s.z, w.first[2])};
}

template <class V, class T>
KOKKOS_FORCEINLINE_FUNCTION Vec3<V> curvature(Around<V> f, const Strides& s, const Weights<T>& w) {
  return {second(f, s.x, w.second[0]), second(f, s.y, w.second[1]), second(f, s.z, w.second[2])};
}

/// Sets the Laplacian and the gradient of the divergence of the vector (x, y, z).
template <class V, class T>
KOKKOS_FORCEINLINE_FUNCTION void second_of_vector(Around<V> x, Around<V> y, Around<V> z,
                                                  const Strides& s, const Weights<T>& w,
                                                  Vec3<V>& laplacian, Vec3<V>& grad_div) {
  const auto xx = curvature(x, s, w), yy = curvature(y, s, w), zz = curvature(z, s, w);
  laplacian = {sum(xx), sum(yy), sum(zz)};
  grad_div = {xx.x + mixed(y, s.x, s.y, w.mixed[0]) + mixed(z, s.x, s.z, w.mixed[1]),
              mixed(x, s.x, s.y, w.mixed[0]) + yy.y + mixed(z, s.y, s.z, w.mixed[2]),
              mixed(x, s.x, s.z, w.mixed[1]) + mixed(y, s.y, s.z, w.mixed[2]) + zz.z};
}

/// Returns the curl of the vector (x, y, z).
template <class V, class T>
KOKKOS_FORCEINLINE_FUNCTION Vec3<V> curl(Around<V> x, Around<V> y, Around<V> z, const Strides& s,
                                         const Weights<T>& w) {
  return {first(z, s.y, w.first[1]) - first(y, s.z, w.first[2]),
          first(x, s.z, w.first[2]) - first(z, s.x, w.first[0]),
          first(y, s.x, w.first[0]) - first(x, s.y, w.first[1])};
}

/// Returns the rate by which upwinding smooths f: sixth differences that grow with the speed.
template <class V, class T>
KOKKOS_FORCEINLINE_FUNCTION V upwinding(Around<V> f, const Vec3<V>& u, const Strides& s,
                                        const Weights<T>& w) {
  const auto magnitude = [](const V& a) __attribute__((always_inline)) {
    return a < T(0) ? -a : a;
  };
  return magnitude(u.x) * second(f, s.x, w.upwind[0]) +
         magnitude(u.y) * second(f, s.y, w.upwind[1]) +
         magnitude(u.z) * second(f, s.z, w.upwind[2]);
}

/// Returns what the equations need at a point. Reads 55 points of the stencil.
/// \param at addresses of the point in the eight fields, in the order of Field
template <class V, Terms kTerms = Terms{}, class T>
KOKKOS_FORCEINLINE_FUNCTION Local<V> local_values(const T* const (&at)[kFields], const Strides& s,
                                                  const Weights<T>& w) {
  const Around<V> lnrho{at[kLnRho]}, ux{at[kUx]}, uy{at[kUy]}, uz{at[kUz]};
  const Around<V> ax{at[kAx]}, ay{at[kAy]}, az{at[kAz]}, entropy{at[kS]};
  Local<V> out;
  out.lnrho = lnrho[0];
  out.u = {ux[0], uy[0], uz[0]};
  out.grad_lnrho = gradient(lnrho, s, w);
  if constexpr (kTerms.entropy) {
    out.s = entropy[0];
    out.grad_s = gradient(entropy, s, w);
  }
  out.grad_ux = gradient(ux, s, w);
  out.grad_uy = gradient(uy, s, w);
  out.grad_uz = gradient(uz, s, w);
  if constexpr (kTerms.entropy) {
    out.lap_lnrho = sum(curvature(lnrho, s, w));
    out.lap_s = sum(curvature(entropy, s, w));
  }
  second_of_vector(ux, uy, uz, s, w, out.lap_u, out.grad_div_u);
  if constexpr (kTerms.magnetic) {
    second_of_vector(ax, ay, az, s, w, out.lap_a, out.grad_div_a);
    out.curl_a = curl(ax, ay, az, s, w);
  }
  return out;
}

}  // namespace halocline::app::mhd
