// SPDX-License-Identifier: BSD-3-Clause
// Between type maps, sequences and MPI's constructors: what goes into a reconstruction and what its
// result is as an MPI datatype.
//
// Best peer: [KT15] describe the way back to MPI in a paragraph; here it keeps basic types, size
// and extent, and ends in MPI's own constructors.
#pragma once

#include <cstdint>
#include <vector>

#include "dtype/reconstruct/repeated_prefixes.hpp"
#include "dtype/type_expr.hpp"
#include "dtype/type_map.hpp"
#include "dtype/type_tree.hpp"

namespace halocline::dtype {

/// The elements of a type map, and what their kinds stand for.
struct TypedSequence {
  std::vector<std::int64_t> displacements;
  std::vector<std::int32_t> kinds;  ///< empty if there is one kind alone
  std::vector<Leaf> leaves;         ///< by kind

  Sequence view() const { return {displacements, kinds}; }
};

/// O(entries).
TypedSequence typed_sequence(const TypeMap& map);

/// The constructor calls that make the type map of `tree` with its bounds. A leaf without a basic
/// type is so many bytes. O(nodes + displacements); nodes that are shared become expressions that
/// are.
TypeExprPtr to_type_expr(const TypeTree& tree);

}  // namespace halocline::dtype
