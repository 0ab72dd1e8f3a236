// SPDX-License-Identifier: BSD-3-Clause
// Finds bucket and triangular nodes that stand for starts of children. [KT15] leave this to their
// readers at the end of section 3.3. Errata C.6 has the definitions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "dtype/bucket_rule.hpp"

namespace halocline::dtype::detail {

/// Describes a bucket type: `count` buckets, empty ones among them, `size` bytes apart. The
/// elements of a bucket are `stride` bytes apart.
struct BucketFit {
  std::int64_t count, size, stride;
};

/// Finds the fewest buckets that hold elements at starts[k] - base; `base` is 0 or starts[0].
/// Returns nullopt if there are more than `most` of them. Needs at least two starts.
///
/// Buckets are as long as they can be: a cut adds a start that the size has to divide. Each
/// distance that occurs is tried as stride. The greatest common divisor of all other steps comes
/// from the divisors of ranges of steps. O(n log n) time, O(n) memory.
std::optional<BucketFit> find_bucket(std::span<const std::int64_t> starts, std::int64_t base,
                                     std::int64_t most);

/// Returns the rule of a bucket type that find_bucket() found. O(n + buckets).
BucketRule bucket_rule(std::span<const std::int64_t> starts, std::int64_t base,
                       const BucketFit& fit);

/// Holds a rule, and the distance in bytes of the elements inside its buckets.
struct FoundRule {
  BucketRule rule;
  std::int64_t stride;
};

/// Finds a triangular type of elements at starts[k] - base: at least two blocks, of lengths that
/// change. The first block is empty if `base` is not starts[0]. No other block is empty.
///
/// Without an empty block, each of the first two blocks has at most two possible ends. There are
/// two if the next block goes on at the distance of the elements: O(n). With an empty block, few
/// ways to divide the elements remain: O(n) for each way that begins well.
std::optional<FoundRule> find_triangular(std::span<const std::int64_t> starts, std::int64_t base);

}  // namespace halocline::dtype::detail
