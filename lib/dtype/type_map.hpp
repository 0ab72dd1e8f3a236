// SPDX-License-Identifier: BSD-3-Clause
// Expands the type map of the MPI standard entry by entry. The type map is the oracle for all other
// code. It is written for plainness, not speed. It shares no code with the tree, the canonical form
// or the packers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dtype/basic_type.hpp"
#include "dtype/type_expr.hpp"

namespace halocline::dtype {

/// Holds the ordered (basic type, byte displacement) sequence of a datatype, and the bounds that
/// follow from it (MPI-3.1 sections 4.1, 4.1.6-4.1.8). All quantities are bytes. Displacements are
/// relative to the buffer argument.
struct TypeMap {
  struct Entry {
    const BasicType* type;
    std::int64_t displacement;
  };
  std::vector<Entry> entries;  ///< in pack order
  std::int64_t size = 0;       ///< sum of the entries' sizes
  std::int64_t lb = 0;
  std::int64_t extent = 0;
  std::int64_t true_lb = 0;
  std::int64_t true_extent = 0;
};

/// Expands `expr`, whose numbers are at most 2^61. Memory and time are O(number of entries).
///
/// An explicit bound (resized, subarray, darray) anywhere in the nesting hides the natural bounds,
/// as the standard's lb and ub markers do. Without an explicit upper bound, the extent is rounded
/// up to the largest alignment among the entries.
TypeMap type_map(const TypeExpr& expr);

}  // namespace halocline::dtype
