// SPDX-License-Identifier: BSD-3-Clause
// The constructors that MPI does not have, in those that it has.
//
// Best peer: [TR14 section 5] describe "a bit of case analysis" for bounded and circular vectors
// and an indexed type for the others; no code is public. Here that is what an MPI library gets to
// see, while our own plans keep the rules (BucketRule).
#pragma once

#include "dtype/type_expr.hpp"

namespace halocline::dtype {

/// A constructor of MPI with the same type map and bounds, applied to the same `old`: contiguous
/// and vectors, at most three for a bounded vector and three a turn for a circular one, in a
/// struct; one indexed type for the others. Throws ConfigError for positions beyond 2^61.
/// O(blocks), of bounded and circular vectors O(turns).
TypeExprPtr lower(const BoundedVector& t);
TypeExprPtr lower(const CircularVector& t);
TypeExprPtr lower(const Bucket& t);
TypeExprPtr lower(const StretchedVector& t);
TypeExprPtr lower(const Triangular& t);

}  // namespace halocline::dtype
