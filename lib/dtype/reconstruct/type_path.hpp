// SPDX-License-Identifier: BSD-3-Clause
// Finds the cheapest type path that represents a displacement sequence: [KT15] sections 3.2 and 3.3
// with the corrections of errata A.4 and A.5.
//
// Best peer: none is public; MPI libraries and [RMG03] look for single vectors and runs. Here the
// result is optimal, with the shift at its cheapest place. One pass counts the index buckets over a
// prefix for all prefixes that repeat it, instead of a sort for each.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "dtype/reconstruct/cost_model.hpp"
#include "dtype/reconstruct/repeated_prefixes.hpp"
#include "dtype/type_tree.hpp"

namespace halocline::dtype {

/// Holds the options of reconstruct_path().
struct ReconstructOptions {
  CostModel costs = {};
  /// Allows index buckets: the extended type path of [KT15] section 3.3.
  bool idxbuc = false;
  /// Allow a RuleBuc, for which MPI has no constructor: a bucket type or a triangular type (end of
  /// [KT15] section 3.3). A triangular type has two blocks or more, whose lengths change; otherwise
  /// it is two vecs. None of its blocks is empty, except perhaps the first. With empty buckets in
  /// front, such a node makes all of a shift, or none of it.
  bool bucket = false, triangular = false;
  /// Limits the comparisons; not negative. Beyond the limit the result is still right, but perhaps
  /// not the cheapest.
  std::int64_t budget = std::numeric_limits<std::int64_t>::max();
};

/// Holds a tree that represents a sequence. Flattened, it is the same leaves at the same
/// displacements in the same order.
struct Reconstruction {
  TreeNodePtr root;
  std::int64_t cost = 0;
  std::int64_t comparisons = 0;  ///< comparisons of elements, to find repeated prefixes
  bool optimal = true;           ///< no allowed tree is cheaper
};

/// Returns the cheapest path of a sequence of n >= 1 elements, all of which are `leaf`; the
/// sequence has no kinds. Nodes of the path are leaf, vec and idx, and those that `options` allows:
/// idxbuc, bucket, triangular. The path is nice [KT15, Lemma 3]: a shift is made by one node that
/// has only vecs (buckets, triangular nodes) above it.
///
/// Time: that of repeated_prefixes(), and O(d(n)^2) with d(n) the number of divisors. Options add
/// to the time:
///
/// - idxbuc: the sum of n / p over the lengths p of all repeated prefixes. This sum is added again
///   for each change of the most frequent distance (BucketCount).
/// - bucket and triangular: the sum of (q / p) log(q / p) over all pairs of these lengths.
///
/// Memory beside the result: O(d(n)), or O(n) with any of these options.
Reconstruction reconstruct_path(const Sequence& sequence, const Leaf& leaf,
                                const ReconstructOptions& options = {});

/// Returns the number of leaves of the flattened tree. O(nodes); a node that neighbours in a strc
/// share is visited once.
std::int64_t leaves_of(const TreeNode& tree);

/// Returns the displacements of all leaves in order. O(leaves).
std::vector<std::int64_t> flatten(const TreeNode& tree);

namespace detail {

/// Holds a tree and its cost.
struct Subtree {
  TreeNodePtr root;  ///< its first leaf is at displacement 0
  std::int64_t cost;
};

/// Means that no tree is known. It is above the cost of any tree or path.
inline constexpr auto kNoCost = std::numeric_limits<std::int64_t>::max() / 4;

/// Returns a tree for the prefix of this length that may cost less than `cost`, which is that of
/// paths over shorter prefixes. nullopt: no such tree. `is_vector`: the prefix is a vector of a
/// shorter prefix.
using Alternative =
    std::function<std::optional<Subtree>(std::int64_t length, std::int64_t cost, bool is_vector)>;

/// Returns the path of reconstruct_path() for elements that are trees themselves, kinds[i] for kind
/// i, and with alternatives. At least one of P_1 and the alternative for the shortest repeated
/// prefix exists.
Reconstruction reconstruct_path(const Sequence& sequence, std::span<const Subtree> kinds,
                                const ReconstructOptions& options, const Alternative& alternative);

/// Returns an idx with `child` at each of these starts.
TreeNodePtr make_idx(std::vector<std::int64_t> starts, TreeNodePtr child);
/// Returns an idxbuc with `child` at each of these starts, whose buckets have this stride.
TreeNodePtr make_idxbuc(const std::vector<std::int64_t>& starts, std::int64_t stride,
                        TreeNodePtr child);

/// Returns `tree` moved by `shift` bytes. Shifts the first node below vecs and buckets by rule that
/// has displacements; if there is none, adds a node.
TreeNodePtr shifted(const TreeNodePtr& tree, std::int64_t shift);

/// Tells if shifted() needs no new node.
bool absorbs_shift(const TreeNode& tree);

}  // namespace detail

}  // namespace halocline::dtype
