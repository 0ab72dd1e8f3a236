// SPDX-License-Identifier: BSD-3-Clause
// Describes types by basic elements: any stretch of the endless repetition of a datatype.
//
// Best peer: none. [TR14 section 6] asks collectives to count basic elements of "a large enough,
// contiguous sequence" of a type. So a rank's block may begin and end inside a repetition (errata
// C.2), and MPI has no type for such a block. Here the block is a tree of a few nodes more than the
// type's own, without expansion.
#pragma once

#include <cstdint>
#include <vector>

#include "dtype/type_expr.hpp"

namespace halocline::dtype {

/// Describes basic elements first, first + 1, ..., last - 1 of a sequence, in type map order.
struct ElementRange {
  std::int64_t first, last;
  bool operator==(const ElementRange&) const = default;
};

/// Returns the number of basic elements of one instance, as MPI_Get_elements counts them: a pair
/// type has two. O(constructor arguments), whatever the counts are.
std::int64_t basic_element_count(const TypeExpr& expr);

/// Returns a type of which one instance has the elements of all `ranges`, one range after the
/// other. Ranges refer to the endless sequence of `expr`, with instance i at i extents.
/// Displacements are relative to the begin of the sequence; the bounds are those of the data.
/// Ranges may be in any order, but receiving into a type takes ranges that do not overlap.
///
/// Time for each range: O(depth) nodes, and the displacements of the lists that are cut. If that
/// leaves more than one piece, normalize() of the pieces in addition.
///
/// \throws ConfigError for ranges that are negative or end before they begin, for nonempty ranges
/// of
///   a type without elements, and for displacements beyond 2^61 bytes.
TypeExprPtr element_ranges(const TypeExpr& expr, const std::vector<ElementRange>& ranges);

}  // namespace halocline::dtype
