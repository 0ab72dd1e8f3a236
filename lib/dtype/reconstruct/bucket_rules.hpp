// SPDX-License-Identifier: BSD-3-Clause
// Which starts of children a bucket or a triangular node can stand for: what [KT15] leave to their
// readers at the end of section 3.3, with the definitions of errata C.6.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "dtype/bucket_rule.hpp"

namespace halocline::dtype::detail {

/// A bucket type: so many buckets, empty ones among them, `size` apart, their elements `stride`.
struct BucketFit {
  std::int64_t count, size, stride;
};

/// The fewest buckets that hold elements at starts[k] - base, `base` being 0 or starts[0]; none if
/// that takes more than `most`. At least two starts.
///
/// Buckets are as long as they can be: to cut one adds a start that the size has to divide. For
/// each distance that there is, the greatest common divisor of what is left comes from those of
/// ranges of all distances: O(n log n) time, O(n) memory.
std::optional<BucketFit> find_bucket(std::span<const std::int64_t> starts, std::int64_t base,
                                     std::int64_t most);

/// What was found, as a rule. O(n + buckets).
BucketRule bucket_rule(std::span<const std::int64_t> starts, std::int64_t base,
                       const BucketFit& fit);

/// A rule, and the distance of the elements inside of its buckets.
struct FoundRule {
  BucketRule rule;
  std::int64_t stride;
};

/// A triangular type of elements at starts[k] - base: at least two blocks, of lengths that change.
/// The first block is empty if the base is not where it stands; no other one is.
///
/// Where the first two blocks end is known but for two places each, where the next block goes on at
/// their distance: O(n). With an empty block, there are few ways to divide the elements: O(n) for
/// each that begins well.
std::optional<FoundRule> find_triangular(std::span<const std::int64_t> starts, std::int64_t base);

}  // namespace halocline::dtype::detail
