// SPDX-License-Identifier: BSD-3-Clause
// Checks results by three oracles: ghosts from global coordinates, the exact wave, and the hash of
// the state.
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

/// Names a verified exchange of a plan. A plan may keep something of its first exchange for the
/// next ones. So two exchanges are verified before the timed ones, and one after them.
struct Verification {
  int number;          ///< number among the plan's verified exchanges, from 1
  std::uint64_t seed;  ///< seed of the values; differs each time, since old data must not pass

  static constexpr int kBeforeTiming = 2;
  /// Returns "exchange 1", "exchange 2", or "exchange after the timed ones".
  std::string name() const;
};

/// Runs `exchange` and compares every stored element bitwise. Before, owned points get values that
/// follow from seed, field and global point. Ghosts get a NaN. Afterwards the elements must hold
/// these values:
/// - Ghosts that are needed: the value of the point that they mirror.
/// - Owned points, ghosts that the shape does not fill, and ghosts beyond an open boundary: their
/// former value.
/// - Ghosts that the shape fills without need: the mirrored value, or the NaN of some rank.
///
/// Collective.
/// \return nullopt if all elements are right; else the number of wrong elements and the first of
/// them, the same text on every rank.
template <class T>
std::optional<std::string> check_exchange(const Domain& domain, const FieldSet<T>& fields,
                                          comm::HaloShape shape, std::uint64_t seed,
                                          const std::function<void()>& exchange, MPI_Comm comm);

/// Tells if the needed ghosts hold the same bits as the points that they mirror. Compares sums over
/// all ranks of hashes of place and bits. Collective.
template <class T>
bool ghosts_match(const Domain& domain, const FieldSet<T>& fields, MPI_Comm comm);

/// Sets the owned points to the plane waves field_wave() of unit amplitude and the ghosts to NaN.
/// Local.
template <class T>
void set_wave(const Domain& domain, const FieldSet<T>& fields);

/// Sets the ghosts beyond open boundaries to the wave after `substeps` substeps. Leaves other
/// ghosts alone. Local.
template <class T>
void set_outer_ghosts(const Domain& domain, const FieldSet<T>& fields, const StencilSpec& spec,
                      double diffusion_number, std::int64_t substeps);

/// Holds the result of check_wave(). `error` is the largest deviation over all ranks and fields,
/// relative to the wave's amplitude. `tolerance` is 1e-12 in double and 1e-5 in float, or two
/// roundings per substep if that is more.
struct WaveCheck {
  double error;
  double tolerance;
  bool passed() const { return std::isfinite(error) && error <= tolerance; }
};
/// Compares the owned points with the exact wave after `substeps` substeps. Collective.
template <class T>
WaveCheck check_wave(const Domain& domain, const FieldSet<T>& fields, const StencilSpec& spec,
                     double diffusion_number, std::int64_t substeps, MPI_Comm comm);

/// Returns a hash of all owned values and their places. The hash is the same for every number of
/// ranks, decomposition and layout. Collective.
template <class T>
std::uint64_t state_hash(const Domain& domain, const FieldSet<T>& fields, MPI_Comm comm);

}  // namespace halocline::app
