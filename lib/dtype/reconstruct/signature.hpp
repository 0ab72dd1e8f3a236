// SPDX-License-Identifier: BSD-3-Clause
// Signature types: what a type sends, one element behind the other.
//
// Best peer: [TR14] ask for them as an MPI function; here they are made without expanding the type.
#pragma once

#include "dtype/type_expr.hpp"

namespace halocline::dtype {

/// The contiguous type with the same sequence of basic types as `expr` [TR14 section 5]: each of
/// them begins where the one before ends, lb is 0, and the extent is the size. Two types match in a
/// transfer if their signature types have equal type maps. Time: that of normalize() of the type's
/// tree, whatever the counts are.
TypeExprPtr signature_type(const TypeExpr& expr);

}  // namespace halocline::dtype
