// SPDX-License-Identifier: BSD-3-Clause
// Repeated and strided prefixes of a displacement sequence: [KT15] section 3.1 with the corrections
// of errata A.1 to A.3.
//
// Best peer: [KT15]'s own Algorithms 3 to 5, of which no code is public, and the plain search over
// all divisors. Here a prefix that is strided answers for all its multiples, so that regular
// sequences take a pass or two per level, and heterogeneous type maps are sequences, too.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace halocline::dtype {

/// The displacements of n elements in bytes and, unless all are of one kind, what each of them is;
/// a view. The absolute values of displacements are at most 2^61.
struct Sequence {
  std::span<const std::int64_t> displacements;
  std::span<const std::int32_t> kinds = {};

  std::int64_t size() const { return std::ssize(displacements); }
  /// Elements [first, first + length).
  Sequence part(std::int64_t first, std::int64_t length) const;
};

/// A prefix P_q of a sequence, q = `length` a divisor of n, so that the sequence is n / q copies of
/// it that differ by a shift alone [KT15, Definition 2].
struct RepeatedPrefix {
  std::int64_t length;
  /// The greatest multiple s of `length` so that P_q is strided in P_s: the distances of all its
  /// copies there are equal.
  std::int64_t strided;
  bool operator==(const RepeatedPrefix&) const = default;
};

struct RepeatedPrefixes {
  std::vector<RepeatedPrefix> prefixes;  ///< by length; the last one is the whole sequence
  std::int64_t comparisons = 0;          ///< of an element (its displacement and kind) with another
  bool complete = true;                  ///< false if the budget was used up before the end
};

/// All repeated prefixes of a sequence of n >= 1 elements; those that were found if there are more
/// than `budget` >= 0 comparisons to make. The lengths are closed under gcd and lcm (errata A.2).
///
/// At most a few n comparisons as measured, one n for each level of a nest of vectors at its
/// bottom; O(n omega(n)) for the rest, omega(n) the number of distinct primes of n. O(d(n)) memory,
/// d(n) the number of divisors.
RepeatedPrefixes repeated_prefixes(const Sequence& sequence,
                                   std::int64_t budget = std::numeric_limits<std::int64_t>::max());

}  // namespace halocline::dtype
