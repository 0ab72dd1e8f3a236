// SPDX-License-Identifier: BSD-3-Clause
// Finds repeated and strided prefixes of a displacement sequence: [KT15] section 3.1 with the
// corrections of errata A.1 to A.3.
//
// Best peer: [KT15]'s own Algorithms 3 to 5, of which no code is public, and the plain search over
// all divisors. Here a strided prefix answers for all its multiples, so regular sequences take a
// pass or two per level. Heterogeneous type maps are sequences, too.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace halocline::dtype {

/// Views a sequence of n elements: their displacements in bytes and, unless all are of one kind,
/// the kind of each. |displacement| is at most 2^61.
struct Sequence {
  std::span<const std::int64_t> displacements;
  std::span<const std::int32_t> kinds = {};

  std::int64_t size() const { return std::ssize(displacements); }
  /// Returns elements [first, first + length).
  Sequence part(std::int64_t first, std::int64_t length) const;
};

/// Describes a repeated prefix P_q of a sequence of n elements; q = `length` is a divisor of n. The
/// sequence is n / q copies of P_q that differ by a shift alone [KT15, Definition 2].
struct RepeatedPrefix {
  std::int64_t length;
  /// Is the greatest multiple s of `length` so that P_q is strided in P_s: all its copies there are
  /// at equal distances.
  std::int64_t strided;
  bool operator==(const RepeatedPrefix&) const = default;
};

/// Holds the result of repeated_prefixes().
struct RepeatedPrefixes {
  std::vector<RepeatedPrefix> prefixes;  ///< by length; the last one is the whole sequence
  std::int64_t comparisons = 0;          ///< comparisons of two elements (displacement and kind)
  bool complete = true;                  ///< false if the budget was used up before the end
};

/// Returns all repeated prefixes of a sequence of n >= 1 elements. Beyond `budget` >= 0
/// comparisons, returns the prefixes that were found so far. The lengths are closed under gcd and
/// lcm (errata A.2).
///
/// Makes at most a few n comparisons, as measured: n for each level of a nest of vectors at its
/// bottom, and O(n omega(n)) for the rest. omega(n) is the number of distinct primes of n. Memory:
/// O(d(n)), where d(n) is the number of divisors.
RepeatedPrefixes repeated_prefixes(const Sequence& sequence,
                                   std::int64_t budget = std::numeric_limits<std::int64_t>::max());

}  // namespace halocline::dtype
