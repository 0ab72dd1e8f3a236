// SPDX-License-Identifier: BSD-3-Clause
// Converts type maps to sequences, and trees to MPI's constructors: the way into a reconstruction
// and back.
//
// Best peer: [KT15] describe the way back to MPI in a paragraph. Here it keeps basic types, size
// and extent, and ends in MPI's own constructors.
#pragma once

#include <cstdint>
#include <vector>

#include "dtype/reconstruct/repeated_prefixes.hpp"
#include "dtype/type_expr.hpp"
#include "dtype/type_map.hpp"
#include "dtype/type_tree.hpp"

namespace halocline::dtype {

/// Holds the elements of a type map, and the leaf of each kind.
struct TypedSequence {
  std::vector<std::int64_t> displacements;
  std::vector<std::int32_t> kinds;  ///< empty if there is one kind alone
  std::vector<Leaf> leaves;         ///< by kind

  Sequence view() const { return {displacements, kinds}; }
};

/// Converts a type map to a sequence of its entries. O(entries).
TypedSequence typed_sequence(const TypeMap& map);

/// Returns the constructor calls that make the type map of `tree` with its bounds. A leaf without a
/// basic type becomes a contiguous type of MPI_BYTE. Shared nodes become shared expressions.
/// O(nodes + displacements).
TypeExprPtr to_type_expr(const TypeTree& tree);

}  // namespace halocline::dtype
