// SPDX-License-Identifier: BSD-3-Clause
// Types in basic elements: any stretch of the endless repetition of a datatype.
//
// Best peer: none. [TR14 section 6] asks collectives to count basic elements of "a large enough,
// contiguous sequence" of a type, so that a rank's block may begin and end inside a repetition
// (errata C.2); MPI has no type for such a block. Here it is a tree of a few nodes more than the
// type's own, which needs no expansion.
#pragma once

#include <cstdint>
#include <vector>

#include "dtype/type_expr.hpp"

namespace halocline::dtype {

/// Basic elements first, first + 1, ..., last - 1 of a sequence, in type map order.
struct ElementRange {
  std::int64_t first, last;
  bool operator==(const ElementRange&) const = default;
};

/// The basic elements of one instance, as MPI_Get_elements counts them: a pair type has two.
/// O(constructor arguments), whatever the counts are.
std::int64_t basic_element_count(const TypeExpr& expr);

/// One instance has the elements of all `ranges`, one range after the other, of the endless
/// sequence of `expr` (instance i at i extents), relative to the begin of the sequence; its bounds
/// are those of its data. Ranges may be in any order, but receiving into a type takes ranges that
/// do not overlap.
///
/// Time: O(depth) nodes and the displacements of the lists that are cut, for each range, and, if
/// that leaves more than one piece, normalize() of the pieces. Throws ConfigError for ranges that
/// are none, for any but empty ones of a type without elements, and for displacements beyond 2^61
/// bytes.
TypeExprPtr element_ranges(const TypeExpr& expr, const std::vector<ElementRange>& ranges);

}  // namespace halocline::dtype
