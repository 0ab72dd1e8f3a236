// SPDX-License-Identifier: BSD-3-Clause
// Makes signature types: the elements that a type sends, one behind the other.
//
// Best peer: [TR14] ask for them as an MPI function. Here they are made without expanding the type.
#pragma once

#include <compare>
#include <cstdint>

#include "dtype/type_expr.hpp"

namespace halocline::dtype {

/// Returns the contiguous type with the same sequence of basic types as `expr` [TR14 section 5].
/// Each basic type begins at the end of the one before, lb is 0, and the extent is the size. Two
/// types match in a transfer if their signature types have equal type maps. Time: that of
/// normalize() of the type's tree, whatever the counts are.
TypeExprPtr signature_type(const TypeExpr& expr);

/// Identifies the basic elements of a type, in type map order.
struct SignatureHash {
  std::int64_t elements;
  std::uint64_t hash;  ///< the same in all processes of a program
  auto operator<=>(const SignatureHash&) const = default;
};

/// Returns a hash that is equal for types of equal signatures, whatever their constructors are. Two
/// types of other signatures have equal hashes with a probability of about elements / 2^61.
/// O(constructor arguments), whatever the counts are.
SignatureHash signature_hash(const TypeExpr& expr);

}  // namespace halocline::dtype
