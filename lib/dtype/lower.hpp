// SPDX-License-Identifier: BSD-3-Clause
// The constructors that MPI does not have, in those that it has.
//
// Best peer: [TR14 section 5] describe "a bit of case analysis" for bounded and circular vectors
// and an indexed type for the others; no code is public. Here that is what an MPI library gets to
// see, while our own plans keep the rules (BucketRule).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dtype/support/error.hpp"
#include "dtype/type_expr.hpp"

namespace halocline::dtype {

/// A constructor of MPI with the same type map and bounds, applied to the same `old`: for a bounded
/// vector a vector and perhaps a block, for a circular one up to three of these a turn, in a
/// struct; one indexed type for the others. O(blocks), of bounded and circular vectors O(turns).
///
/// Throws ConfigError for arguments that are none (wrong_arguments()), for positions beyond 2^61
/// bytes, and for more than 2^26 blocks or 2^20 turns.
TypeExprPtr lower(const BoundedVector& t);
TypeExprPtr lower(const CircularVector& t);
TypeExprPtr lower(const Bucket& t);
TypeExprPtr lower(const StretchedVector& t);
TypeExprPtr lower(const Triangular& t);

/// `count` blocks of `blocklength` elements, `stride` apart, the first at `position`; in elements.
struct StridedBlocks {
  std::int64_t position, count, blocklength, stride;
};

/// What bounded and circular vectors consist of, in order; nothing is empty. As lower().
std::vector<StridedBlocks> strided_blocks(const BoundedVector& t);
std::vector<StridedBlocks> strided_blocks(const CircularVector& t);

/// What the arguments should be ("a bound of at least 1"); null if they are right. O(1), of
/// bucket and stretched types O(blocks).
const char* wrong_arguments(const BoundedVector& t);
const char* wrong_arguments(const CircularVector& t);
const char* wrong_arguments(const Bucket& t);
const char* wrong_arguments(const StretchedVector& t);
const char* wrong_arguments(const Triangular& t);

/// Throws ConfigError if the arguments are wrong.
template <class Constructor>
void check_arguments(const Constructor& t) {
  if (const auto* expected = wrong_arguments(t))
    throw ConfigError(std::string("datatype does not exist (a constructor of it takes ") +
                      expected + "): change its arguments");
}

}  // namespace halocline::dtype
