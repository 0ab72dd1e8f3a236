// SPDX-License-Identifier: BSD-3-Clause
// The oracles: ghosts from global coordinates, the exact wave, and the hash of the state.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "comm/halo/halo_spec.hpp"
#include "fields.hpp"
#include "stencil.hpp"

namespace halocline::app {

/// Names an exchange of a plan that is verified. A plan may prepare in its first exchange what it
/// uses again from the second one on. So two are verified before it is timed, and one after that.
struct Verification {
  int number;          ///< among those of the plan, from 1
  std::uint64_t seed;  ///< of the values; another one each time, since old data must not pass

  static constexpr int kBeforeTiming = 2;
  /// "exchange 1", "exchange 2", "exchange after the timed ones".
  std::string name() const;
};

/// Fills the owned points with values that follow from seed, field and global point, and the ghosts
/// with a NaN; runs `exchange`; and compares every stored element bitwise: ghosts that are needed
/// with the value of the point that they mirror; owned points, ghosts that are not needed and those
/// beyond an open boundary with what was there before. Ghosts that the shape fills although they
/// are not needed may hold either. Empty if all are right, else how many are wrong and the first of
/// them, the same text on every rank. Collective.
template <class T>
std::optional<std::string> check_exchange(const Domain& domain, const FieldSet<T>& fields,
                                          comm::HaloShape shape, std::uint64_t seed,
                                          const std::function<void()>& exchange, MPI_Comm comm);

/// Compares the ghosts that are needed with the points that they mirror, by the sums of hashes of
/// place and bits over all ranks. Returns true if they hold the same values, bit for bit.
/// Collective.
template <class T>
bool ghosts_match(const Domain& domain, const FieldSet<T>& fields, MPI_Comm comm);

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
