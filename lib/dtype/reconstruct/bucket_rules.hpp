// SPDX-License-Identifier: BSD-3-Clause
// Which starts of children a bucket or a triangular node can stand for: what [KT15] leave to their
// readers at the end of section 3.3, with the definitions of errata C.6.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "dtype/bucket_rule.hpp"

namespace halocline::dtype::detail {

/// A rule, and the distance of the elements inside of its buckets.
struct FoundRule {
  BucketRule rule;
  std::int64_t stride;
};

/// The bucket type with the fewest buckets whose elements start at starts[k] - starts[0]: its first
/// bucket is not empty, so that it has no shift; others may be. None if starts do not go up, or
/// down, in multiples of one size but for runs of one distance. At least one start.
///
/// Buckets are as long as they can be: to cut one adds a start that the size has to divide. For
/// each distance that there is, the greatest common divisor of what is left comes from a tree over
/// all distances: O(n log n).
std::optional<FoundRule> find_bucket(std::span<const std::int64_t> starts);

/// The same for a triangular type without empty blocks; with a change of 0 and one block, too. The
/// first block and the second one are found at once but for two places each where they may end if
/// the next one goes on at their distance; so O(n).
std::optional<FoundRule> find_triangular(std::span<const std::int64_t> starts);

}  // namespace halocline::dtype::detail
