// SPDX-License-Identifier: BSD-3-Clause
// Type normalisation: a cheaper tree with the same leaves at the same displacements in the same
// order, found without flattening the tree [KT15 section 4, and their reference 11].
//
// Best peer: MPI libraries rewrite single nodes (a struct to an index, an index to a vector). Here
// every list of a tree is reconstructed over the normalised trees below it, and what is small is
// flattened after all.
#pragma once

#include "dtype/reconstruct/reconstruct_tree.hpp"
#include "dtype/type_tree.hpp"

namespace halocline::dtype {

/// A tree like `tree` that costs no more, from the leaves up: shifts move to the top, vectors that
/// continue each other are one, each list (idx, idxbuc, strc) is replaced by the cheapest tree over
/// its entries that reconstruct_tree() finds, and a subtree that has few leaves for its size by
/// that over its leaves. A leaf keeps its basic type. A tree without leaves becomes an empty strc.
/// A tree holds at most 2^61 bytes.
///
/// Optimal where reconstruct_tree() of the flattened tree would be, if it is small: at most 64
/// leaves and 4 for each entry. Time: reconstruct_tree() of each list, whatever the counts are.
Reconstruction normalize(const TreeNodePtr& tree, const TreeOptions& options = {});

}  // namespace halocline::dtype
