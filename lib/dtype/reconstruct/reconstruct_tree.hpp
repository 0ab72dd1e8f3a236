// SPDX-License-Identifier: BSD-3-Clause
// Finds type trees with strc for sequences of elements of any kinds: the problem of [KT15] section
// 2.4. The paper leaves its polynomial solution to its reference [1].
//
// Best peer: none is public. Here one table of common extensions compares all segments, so the
// exact search takes O(n^3). Beyond its bound, runs are folded level by level until the rest is
// short enough.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dtype/reconstruct/type_path.hpp"
#include "dtype/type_tree.hpp"

namespace halocline::dtype {

/// Holds the options of reconstruct_tree() and normalize().
struct TreeOptions {
  CostModel costs = {};
  /// Is the largest number of elements for which the tree is the cheapest one.
  std::int64_t exact = 128;
};

/// Returns a tree over leaf, vec, idx, idxbuc and strc for a sequence of n >= 1 elements. Element i
/// is leaves[kind of i], or leaves[0] if the sequence has no kinds. The tree is the cheapest one if
/// n is at most options.exact.
///
/// For larger n the tree costs at most the extended path, if there is one. Repeated prefixes are
/// searched as for paths, and each may be a strc instead. A short prefix is searched exactly. In a
/// long prefix, runs of equal distances are folded, and the rest is searched.
///
/// Equal subtrees of an exact search are shared; each use costs. Time: O(n^3) if exact. Otherwise
/// reconstruct_path() at every level of folding, O(n log n) for all folding, and O(n) for all
/// exact searches.
Reconstruction reconstruct_tree(const Sequence& sequence, std::span<const Leaf> leaves,
                                const TreeOptions& options = {});

namespace detail {

/// Holds a sequence of trees.
struct Elements {
  std::vector<std::int64_t> displacements;
  std::vector<std::int32_t> kinds;
  std::vector<Subtree> trees;  ///< by kind

  void add(std::int64_t displacement, std::int32_t kind) {
    displacements.push_back(displacement);
    kinds.push_back(kind);
  }
  Sequence view() const {
    return {displacements, trees.size() > 1 ? std::span(kinds) : std::span<const std::int32_t>()};
  }
};

/// Returns the tree of reconstruct_tree() for elements that are trees themselves: kinds[i] for kind
/// i.
Reconstruction reconstruct_tree(const Sequence& sequence, std::span<const Subtree> kinds,
                                const TreeOptions& options);

}  // namespace detail

}  // namespace halocline::dtype
