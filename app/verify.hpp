// SPDX-License-Identifier: BSD-3-Clause
// The oracles: ghosts from global coordinates, the exact wave, and the hash of the state.
#pragma once

#include <cmath>
#include <functional>
#include <optional>
#include <string>

#include "comm/halo/halo_spec.hpp"
#include "fields.hpp"
#include "stencil.hpp"

namespace halocline::app {

/// Fills the owned points with values that follow from seed, field and global point, and the ghosts
/// with a NaN; runs `exchange`; and compares every stored element bitwise: ghosts that are needed
/// with the value of the point that they mirror; owned points, ghosts that are not needed and those
/// beyond an open boundary with what was there before. Ghosts that the shape fills although they
/// are not needed may hold either. Empty if all are right, else how many are wrong and the first of
/// them, the same text on every rank. Collective.
template <class T>
std::optional<std::string> check_exchange(const Domain& domain, const FieldSet<T>& fields,
                                          comm::HaloShape shape, std::int64_t seed,
                                          const std::function<void()>& exchange, MPI_Comm comm);

/// Sets the owned points to the plane waves field_wave() of unit amplitude and the ghosts to NaN.
/// Local.
template <class T>
void set_wave(const Domain& domain, const FieldSet<T>& fields);

/// Sets the ghosts beyond open boundaries to the wave after `substeps` substeps; others are left
/// alone. Local.
template <class T>
void set_outer_ghosts(const Domain& domain, const FieldSet<T>& fields, const StencilSpec& spec,
                      double diffusion_number, std::int64_t substeps);

/// Largest deviation of the owned points from the exact wave after `substeps` substeps, over all
/// ranks and fields, relative to the wave's amplitude; and how much is allowed: 1e-12 in double,
/// 1e-5 in float, or two roundings per substep where so many substeps exceed that. Collective.
struct WaveCheck {
  double error;
  double tolerance;
  bool passed() const { return std::isfinite(error) && error <= tolerance; }
};
template <class T>
WaveCheck check_wave(const Domain& domain, const FieldSet<T>& fields, const StencilSpec& spec,
                     double diffusion_number, std::int64_t substeps, MPI_Comm comm);

/// A hash of all owned values and their places: the same for every number of ranks, decomposition
/// and layout. Collective.
template <class T>
std::uint64_t state_hash(const Domain& domain, const FieldSet<T>& fields, MPI_Comm comm);

}  // namespace halocline::app
