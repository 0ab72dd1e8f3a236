// SPDX-License-Identifier: BSD-3-Clause
// Advances compressible magnetohydrodynamics in time, on the host or on a device.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "comm/halo/halo_spec.hpp"
#include "fields.hpp"
#include "physics/mhd/differences.hpp"

namespace halocline::app::mhd {

/// Holds the parameters of the equations, in code units. An ideal gas needs cs0^2 = (gamma - 1) cp
/// t0; with other values energy is not conserved.
struct Parameters {
  double gamma = 5.0 / 3;      ///< adiabatic index
  double cp = 1;               ///< heat capacity at constant pressure
  double cs0 = 1;              ///< speed of sound at lnrho0 and s = 0
  double lnrho0 = 0;           ///< logarithm of the reference density
  double t0 = 1.5;             ///< temperature at lnrho0 and s = 0
  double mu0 = 1.4;            ///< magnetic permeability
  double nu = 5e-3;            ///< kinematic viscosity
  double zeta = 1e-2;          ///< bulk viscosity
  double eta = 5e-3;           ///< magnetic diffusivity
  double conduction = 1e-3;    ///< K, the heat conductivity
  std::array<double, 3> b0{};  ///< uniform field that is added to curl A
  Terms terms;                 ///< equations that are solved
  bool upwind = false;         ///< adds upwinding to the equation of density
  double shock = 0;            ///< coefficient of the viscosity near shocks; 0: none
  /// Leaves out the force zeta (div u) grad(lnrho), as Astaroth does. Then neither momentum nor
  /// energy is conserved.
  bool astaroth_bulk_viscosity = false;
};

/// Tells if the parameters are those of an ideal gas, to 1e-6.
bool is_ideal_gas(const Parameters& parameters);

/// Returns the parameters in the form in which the kernel needs them.
template <class T>
Constants<T> constants(const Parameters& parameters);

/// Returns the fields that have an equation, in their order in memory.
std::vector<Field> fields_of(const Terms& terms);

/// Returns all fields in memory: those with an equation, then kShock if there is shock viscosity.
std::vector<Field> stored_fields(const Parameters& parameters);

/// Returns the directions in which the stencil of a field reads ghosts. lnrho and s: 6 faces. A
/// component of u or A: 6 faces and the 8 edges that lie in planes with its own axis.
comm::DirectionSet needed_neighbors(Field field);

/// Names one of the three substeps of a step of Williamson's low-storage Runge-Kutta method (1980).
struct Substep {
  static constexpr int kOfStep = 3;
  static constexpr double kAlpha[] = {0, -5.0 / 9, -153.0 / 128};
  static constexpr double kBeta[] = {1.0 / 3, 15.0 / 16, 8.0 / 15};
  int stage;  ///< 0, 1 or 2
  double dt;  ///< of the whole step
};

/// Starts a substep on the points of `boxes`, which have stored coordinates. Writes `out` from `in`
/// with its ghosts. From stage 1 on, `out` holds the fields before the last substep, and they are
/// read, too. Two sets of fields in turn are all the memory that the method needs. finish_substep()
/// waits for the work. The domain has the fields of fields_of() and a radius of 3 or more; `in` and
/// `out` differ. Local. Every point takes the same operations in the same order. So the bits do not
/// depend on decomposition, layout or boxes.
template <class T>
void start_substep(const Domain& domain, const Parameters& parameters,
                   const std::array<double, 3>& spacing, const Substep& substep,
                   const FieldSet<T>& in, const FieldSet<T>& out, std::span<const comm::Box> boxes);

/// Waits for all parts that start_substep() has started. Local.
template <class T>
void finish_substep(const FieldSet<T>& out);

/// Sets `out` to the time derivatives of `in` on all owned points. For tests. Local.
template <class T>
void set_rates(const Domain& domain, const Parameters& parameters,
               const std::array<double, 3>& spacing, const FieldSet<T>& in, const FieldSet<T>& out);

/// Holds lengths of a step.
struct StepLimits {
  double chosen;  ///< longest step with a margin
  double stable;  ///< a longer step lets some wave grow
};

/// Returns how long a step may be:
///   chosen = min(0.4 h / max c, 0.1 h^2 / max(eta, chi, nu + 0.3 zeta)).
///   stable = min(0.6305 h / max c, 0.4157 h^2 / max(3 eta, 3 chi, 10/3 nu + zeta)).
/// h is the smallest spacing. c is the speed of the fastest wave, |u| + sqrt(cs^2 + B^2 / (mu0
/// rho)). chi is gamma K / (rho cp). The numbers of `stable` follow from the stencil: the first
/// difference is at most 1.586 / h, the second one 6.044 / h^2. A step is stable up to sqrt(3)
/// along the imaginary axis, and up to 2.513 along the real one. Both lengths are 0 if a value is
/// no number, and infinite if nothing moves. Reads the ghosts of `in`. The same bits on every
/// number of ranks, since maxima do not depend on their order. Collective.
template <class T>
StepLimits step_limits(const Domain& domain, const Parameters& parameters,
                       const std::array<double, 3>& spacing, const FieldSet<T>& in, MPI_Comm comm);

}  // namespace halocline::app::mhd
