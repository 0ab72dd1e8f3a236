// SPDX-License-Identifier: BSD-3-Clause
// Type trees with strc for sequences of elements of any kinds: the problem of [KT15] section 2.4,
// whose polynomial solution the paper leaves to its reference [1].
//
// Best peer: none is public. Here segments are compared by one table of common extensions, so that
// the exact search takes O(n^3); beyond its bound, runs are folded level by level until what is
// left is short enough for it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dtype/reconstruct/type_path.hpp"
#include "dtype/type_tree.hpp"

namespace halocline::dtype {

struct TreeOptions {
  CostModel costs = {};
  /// Up to so many elements the tree is the cheapest one.
  std::int64_t exact = 128;
};

/// A tree over leaf, vec, idx, idxbuc and strc of a sequence of n >= 1 elements; element i is
/// leaves[kind of i], or leaves[0] if the sequence has no kinds. The cheapest one if n is at most
/// options.exact. Else never dearer than the extended path, if there is one: prefixes that are
/// repeated are searched as paths are, and each may be a strc instead, exact where it is short, and
/// otherwise of what is left when runs of equal distances are folded.
///
/// Equal subtrees of an exact search are shared; each use costs. Time: O(n^3) if exact; else that
/// of reconstruct_path() at every level that is folded, O(n) for what is folded and for the exact
/// searches together.
Reconstruction reconstruct_tree(const Sequence& sequence, std::span<const Leaf> leaves,
                                const TreeOptions& options = {});

namespace detail {

/// A sequence of trees.
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

/// reconstruct_tree() of elements which are trees themselves, `kinds[i]` for kind i.
Reconstruction reconstruct_tree(const Sequence& sequence, std::span<const Subtree> kinds,
                                const TreeOptions& options);

}  // namespace detail

}  // namespace halocline::dtype
