// SPDX-License-Identifier: BSD-3-Clause
// Expresses constructors that MPI does not have by those that it has.
//
// Best peer: [TR14 section 5] describe "a bit of case analysis" for bounded and circular vectors,
// and an indexed type for other constructors. No code is public. Here only an MPI library gets to
// see these types, while our own plans keep the rules (BucketRule).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dtype/type_expr.hpp"
#include "support/error.hpp"

namespace halocline::dtype {

/// Returns a type of MPI with the same type map and bounds, applied to the same `old`: a vector and
/// perhaps a block. O(1). Throws ConfigError for wrong_arguments() and for positions beyond 2^61
/// bytes.
TypeExprPtr lower(const BoundedVector& t);
/// Returns a type of MPI with the same type map and bounds, applied to the same `old`: a struct of
/// up to three vectors or blocks a turn. O(turns). Throws ConfigError for wrong_arguments(), for
/// positions beyond 2^61 bytes, and for more than 2^20 turns.
TypeExprPtr lower(const CircularVector& t);
/// Returns an indexed type of MPI with the same type map and bounds, applied to the same `old`.
/// O(blocks). Throws ConfigError for wrong_arguments(), for positions beyond 2^61 bytes, and for
/// more than 2^26 blocks.
TypeExprPtr lower(const Bucket& t);
/// Returns an indexed type of MPI with the same type map and bounds, applied to the same `old`.
/// O(blocks). Throws ConfigError for wrong_arguments(), for positions beyond 2^61 bytes, and for
/// more than 2^26 blocks.
TypeExprPtr lower(const StretchedVector& t);
/// Returns an indexed type of MPI with the same type map and bounds, applied to the same `old`; a
/// vector if all blocks have one length. O(blocks). Throws ConfigError for wrong_arguments(), for
/// positions beyond 2^61 bytes, and for more than 2^26 blocks.
TypeExprPtr lower(const Triangular& t);

/// Describes `count` blocks of `blocklength` elements, `stride` apart, the first at `position`. All
/// numbers are in elements.
struct StridedBlocks {
  std::int64_t position, count, blocklength, stride;
};

/// Returns the blocks of a bounded vector in order; none is empty. O(1). Throws ConfigError for
/// wrong_arguments() and for numbers beyond 2^61.
std::vector<StridedBlocks> strided_blocks(const BoundedVector& t);
/// Returns the blocks of a circular vector in order; none is empty. O(turns). Throws ConfigError
/// for wrong_arguments(), for numbers beyond 2^61, and for more than 2^20 turns.
std::vector<StridedBlocks> strided_blocks(const CircularVector& t);

/// Returns the rule that the arguments break ("a bound of at least 1"); null if they are right.
/// O(1); O(blocks) for bucket and stretched types.
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
