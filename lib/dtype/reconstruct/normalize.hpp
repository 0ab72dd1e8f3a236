// SPDX-License-Identifier: BSD-3-Clause
// Normalises types: finds a cheaper tree with the same leaves at the same displacements in the same
// order. Does not flatten the tree [KT15 section 4, and its reference 11].
//
// Best peer: MPI libraries rewrite single nodes (a struct to an index, an index to a vector). Here
// every list of a tree is reconstructed over the normalised trees below it, and small subtrees are
// flattened after all.
#pragma once

#include "dtype/reconstruct/reconstruct_tree.hpp"
#include "dtype/type_tree.hpp"

namespace halocline::dtype {

/// Returns a tree with the same leaves as `tree`, in the same order, that costs no more. Works from
/// the leaves up:
///
/// - Shifts move to the top.
/// - Vectors that continue each other become one vector.
/// - Each list (idx, idxbuc, strc) becomes the cheapest tree over its entries that
///   reconstruct_tree() finds.
/// - A subtree with few leaves for its size becomes the cheapest tree over its leaves that is
///   found.
///
/// A leaf keeps its basic type. A tree without leaves becomes an empty strc. A tree holds at most
/// 2^61 bytes.
///
/// A small tree has at most 64 leaves, plus 4 for each entry. Its result is optimal if
/// reconstruct_tree() of the flattened tree is. Time: reconstruct_tree() of each list, whatever the
/// counts are.
Reconstruction normalize(const TreeNodePtr& tree, const TreeOptions& options = {});

}  // namespace halocline::dtype
