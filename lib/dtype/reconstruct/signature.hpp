// SPDX-License-Identifier: BSD-3-Clause
// Signature types: what a type sends, one element behind the other.
//
// Best peer: [TR14] ask for them as an MPI function; here they are made without expanding the type.
#pragma once

#include <compare>
#include <cstdint>

#include "dtype/type_expr.hpp"

namespace halocline::dtype {

/// The contiguous type with the same sequence of basic types as `expr` [TR14 section 5]: each of
/// them begins where the one before ends, lb is 0, and the extent is the size. Two types match in a
/// transfer if their signature types have equal type maps. Time: that of normalize() of the type's
/// tree, whatever the counts are.
TypeExprPtr signature_type(const TypeExpr& expr);

/// Which basic elements a type has, in type map order.
struct SignatureHash {
  std::int64_t elements;
  std::uint64_t hash;  ///< the same in all processes of a program
  auto operator<=>(const SignatureHash&) const = default;
};

/// Equal for types of equal signatures, whatever constructors they are made of; for two others with
/// a probability of about elements / 2^61. O(constructor arguments), whatever the counts are.
SignatureHash signature_hash(const TypeExpr& expr);

}  // namespace halocline::dtype
