// SPDX-License-Identifier: BSD-3-Clause
// Gives the time derivatives of compressible magnetohydrodynamics at a point, from the fields and
// their space derivatives there.
//
// Source: the equations of Astaroth, with the corrected bulk viscosity. V is a number or Lanes.
#pragma once

#include <Kokkos_Core.hpp>

#include "physics/lanes.hpp"

namespace halocline::app::mhd {

/// Holds the components of a vector along x, y and z.
template <class V>
struct Vec3 {
  V x, y, z;

  friend KOKKOS_FORCEINLINE_FUNCTION Vec3 operator+(const Vec3& a, const Vec3& b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z};
  }
  friend KOKKOS_FORCEINLINE_FUNCTION Vec3 operator-(const Vec3& a, const Vec3& b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z};
  }
};
/// Returns `factor` times the vector. The factor is a number, or one number for each lane.
template <class F, class V>
KOKKOS_FORCEINLINE_FUNCTION Vec3<V> scaled(const F& factor, const Vec3<V>& a) {
  return {factor * a.x, factor * a.y, factor * a.z};
}
template <class V>
KOKKOS_FORCEINLINE_FUNCTION V dot(const Vec3<V>& a, const Vec3<V>& b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
template <class V>
KOKKOS_FORCEINLINE_FUNCTION Vec3<V> cross(const Vec3<V>& a, const Vec3<V>& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
template <class V>
KOKKOS_FORCEINLINE_FUNCTION V sum(const Vec3<V>& a) {
  return a.x + a.y + a.z;
}

/// Tells which equations are solved beside those of density and velocity.
struct Terms {
  bool entropy = true;   ///< else the gas is isothermal
  bool magnetic = true;  ///< else there is no field, and no Lorentz force
};

/// Holds what the equations need at a point. lnrho: logarithm of the density. u: velocity. a:
/// magnetic vector potential. s: entropy.
template <class V>
struct Local {
  V lnrho, s;
  Vec3<V> u;
  Vec3<V> grad_lnrho, grad_s;
  Vec3<V> grad_ux, grad_uy, grad_uz;
  V lap_lnrho, lap_s;
  Vec3<V> lap_u, lap_a;
  Vec3<V> grad_div_u, grad_div_a;
  Vec3<V> curl_a;
};

/// Holds the time derivatives of the fields. Those of fields without an equation are not set.
template <class V>
struct Rates {
  V lnrho;
  Vec3<V> u, a;
  V s;
};

/// Holds the numbers of the equations in the form in which a point needs them.
template <class T>
struct Constants {
  T gamma_by_cp;  ///< gamma / cp
  T gamma_less_1;
  T by_cp;            ///< 1 / cp
  T cs0_squared;      ///< square of the speed of sound at lnrho0 and s = 0
  T lnrho0;           ///< logarithm of the reference density
  T by_t0;            ///< 1 / temperature at lnrho0 and s = 0
  T by_mu0;           ///< 1 / magnetic permeability
  T nu;               ///< kinematic viscosity
  T zeta;             ///< bulk viscosity
  T zeta_of_density;  ///< zeta for the corrected form; 0 for Astaroth's
  T eta;              ///< magnetic diffusivity
  T eta_mu0;          ///< eta * mu0
  T conduction;       ///< K, the heat conductivity
  Vec3<T> b0;         ///< uniform field that is added to curl A
};

/// Returns the magnetic field curl A + B0.
template <class V>
KOKKOS_FORCEINLINE_FUNCTION Vec3<V> magnetic_field(const Vec3<V>& curl_a,
                                                   const Vec3<ScalarOf<V>>& b0) {
  return {curl_a.x + b0.x, curl_a.y + b0.y, curl_a.z + b0.z};
}

/// Returns ln(T / T0). The square of the speed of sound grows by the same ratio.
template <class V>
KOKKOS_FORCEINLINE_FUNCTION V log_temperature_ratio(const V& lnrho, const V& s,
                                                    const Constants<ScalarOf<V>>& c) {
  return c.gamma_by_cp * s + c.gamma_less_1 * (lnrho - c.lnrho0);
}

/// Returns the time derivatives at a point. Computes two exponentials and one division.
template <Terms kTerms = Terms{}, class V>
KOKKOS_FORCEINLINE_FUNCTION Rates<V> rates(const Local<V>& f, const Constants<ScalarOf<V>>& c) {
  using T = ScalarOf<V>;
  constexpr T kThird = T(1) / 3;
  const auto& g = f.grad_lnrho;
  V t0_by_t{}, cs_squared = V{} + c.cs0_squared;
  if constexpr (kTerms.entropy) {
    t0_by_t = exponential<V>(-log_temperature_ratio(f.lnrho, f.s, c));
    cs_squared = c.cs0_squared / t0_by_t;
  }
  const V by_rho = exponential<V>(-f.lnrho);
  Vec3<V> lorentz{};
  V joule{};
  Rates<V> out;
  if constexpr (kTerms.magnetic) {
    const auto b = magnetic_field(f.curl_a, c.b0);
    const auto j = scaled(c.by_mu0, f.grad_div_a - f.lap_a);
    lorentz = scaled(by_rho, cross(j, b));
    joule = c.eta_mu0 * dot(j, j) * by_rho;
    out.a = cross(f.u, b) + scaled(c.eta, f.lap_a);
  }

  // The traceless rate of strain.
  const V div_u = f.grad_ux.x + f.grad_uy.y + f.grad_uz.z;
  const V third = kThird * div_u;
  const V xx = f.grad_ux.x - third, yy = f.grad_uy.y - third, zz = f.grad_uz.z - third;
  const V xy = T(0.5) * (f.grad_ux.y + f.grad_uy.x);
  const V xz = T(0.5) * (f.grad_ux.z + f.grad_uz.x);
  const V yz = T(0.5) * (f.grad_uy.z + f.grad_uz.y);
  const Vec3<V> strain_g{xx * g.x + xy * g.y + xz * g.z, xy * g.x + yy * g.y + yz * g.z,
                         xz * g.x + yz * g.y + zz * g.z};

  out.lnrho = -dot(f.u, g) - div_u;
  const Vec3<V> advection{dot(f.u, f.grad_ux), dot(f.u, f.grad_uy), dot(f.u, f.grad_uz)};
  auto pressure = g;
  if constexpr (kTerms.entropy) pressure = scaled(c.by_cp, f.grad_s) + g;
  const auto viscous =
      scaled(c.nu, f.lap_u + scaled(kThird, f.grad_div_u) + scaled(T(2), strain_g)) +
      scaled(c.zeta, f.grad_div_u) + scaled(c.zeta_of_density * div_u, g);
  out.u = lorentz - advection - scaled(cs_squared, pressure) + viscous;
  if constexpr (kTerms.entropy) {
    const V strain_squared = xx * xx + yy * yy + zz * zz + T(2) * (xy * xy + xz * xz + yz * yz);
    const V heating =  // per mass
        joule + T(2) * c.nu * strain_squared + c.zeta * div_u * div_u;
    const auto grad_ln_t = scaled(c.gamma_by_cp, f.grad_s) + scaled(c.gamma_less_1, g);
    const V lap_ln_t = c.gamma_by_cp * f.lap_s + c.gamma_less_1 * f.lap_lnrho;
    out.s = heating * (c.by_t0 * t0_by_t) - dot(f.u, f.grad_s) +
            c.conduction * by_rho * (lap_ln_t + dot(grad_ln_t, grad_ln_t));
  }
  return out;
}

}  // namespace halocline::app::mhd
