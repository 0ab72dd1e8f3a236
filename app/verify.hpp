// SPDX-License-Identifier: BSD-3-Clause
// Checks results by two oracles: ghosts from global coordinates, and the hash of the state. The
// third one, the exact solution, belongs to the physics.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "comm/halo/halo_spec.hpp"
#include "fields.hpp"

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

/// Runs `exchange` and compares every element bitwise. Before, owned points get values that
/// follow from seed, field and global point. Ghosts and padding get a NaN. Afterwards the elements
/// must hold these values:
/// - Ghosts that are needed: the value of the point that they mirror.
/// - Owned points, padding, ghosts that the shape does not fill, and ghosts beyond an open
/// boundary: their former value.
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

/// Returns a hash of all owned values and their places. The hash is the same for every number of
/// ranks, decomposition and layout. Collective.
template <class T>
std::uint64_t state_hash(const Domain& domain, const FieldSet<T>& fields, MPI_Comm comm);

/// Returns what values of field number `field` add to state_hash(), modulo 2^64. They belong to
/// consecutive points, x fastest, then y, from point number `first` on. Local.
template <class T>
std::uint64_t part_of_state_hash(std::span<const T> values, std::int64_t first, int field,
                                 int fields);

}  // namespace halocline::app
