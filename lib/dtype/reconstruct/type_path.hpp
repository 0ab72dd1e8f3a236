// SPDX-License-Identifier: BSD-3-Clause
// The cheapest type path that represents a displacement sequence: [KT15] sections 3.2 and 3.3 with
// the corrections of errata A.4 and A.5.
//
// Best peer: none is public; MPI libraries and [RMG03] look for single vectors and runs. Here the
// result is optimal, with the shift wherever it is cheapest, and the index buckets over a prefix
// are counted in one pass for all that it is repeated in, instead of a sort for each of them.
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

struct ReconstructOptions {
  CostModel costs = {};
  /// Index buckets as well: the extended type path of [KT15] section 3.3.
  bool idxbuc = false;
  /// The nodes that MPI has no constructor for, at the end of that section: a RuleBuc that is a
  /// bucket type, or a triangular type of two blocks or more whose lengths change (else it is two
  /// vecs) and none of which is empty but perhaps the first. With empty buckets in front such a
  /// node makes a shift: all of it, or none.
  bool bucket = false, triangular = false;
  /// Comparisons to make at most, not negative. Beyond, what is returned is still right, but
  /// perhaps not the cheapest.
  std::int64_t budget = std::numeric_limits<std::int64_t>::max();
};

/// A tree that represents a sequence: flattened, it is the same leaves at the same displacements in
/// the same order.
struct Reconstruction {
  TreeNodePtr root;
  std::int64_t cost = 0;
  std::int64_t comparisons = 0;  ///< of elements, for the repeated prefixes of all of it
  bool optimal = true;           ///< among what was asked for
};

/// The cheapest path over leaf, vec and idx (and idxbuc, bucket, triangular) of a sequence of n >=
/// 1 elements, all of which are `leaf`; the sequence has no kinds. The path is nice [KT15, Lemma
/// 3]: the shift, if there is one, is made by one node that has only vecs (buckets, triangular
/// nodes) above it.
///
/// Time: that of repeated_prefixes() and O(d(n)^2), d(n) the number of divisors; with idxbuc also
/// the sum of n / p over the lengths p of all repeated prefixes, again for each change of the most
/// frequent distance (BucketCount); with bucket and triangular the sum of (q / p) log(q / p) over
/// all pairs of them. Memory: O(d(n)), with any of these O(n), beside the result.
Reconstruction reconstruct_path(const Sequence& sequence, const Leaf& leaf,
                                const ReconstructOptions& options = {});

/// How many leaves the flattened tree has. O(nodes), those that neighbours in a strc share once.
std::int64_t leaves_of(const TreeNode& tree);

/// The displacements of all leaves in order. O(leaves).
std::vector<std::int64_t> flatten(const TreeNode& tree);

namespace detail {

struct Subtree {
  TreeNodePtr root;  ///< its first leaf is at displacement 0
  std::int64_t cost;
};

/// Costs more than any tree or path.
inline constexpr auto kDearest = std::numeric_limits<std::int64_t>::max() / 4;

/// What there is for a prefix beside paths over shorter ones, if it costs less than `cost`;
/// `is_vector`: the prefix is a vector of a shorter one.
using Alternative =
    std::function<std::optional<Subtree>(std::int64_t length, std::int64_t cost, bool is_vector)>;

/// reconstruct_path() of elements which are trees themselves, `kinds[i]` for kind i, and with
/// alternatives. At least one of P_1 and the alternative for the shortest repeated prefix exists.
Reconstruction reconstruct_path(const Sequence& sequence, std::span<const Subtree> kinds,
                                const ReconstructOptions& options, const Alternative& alternative);

/// What stands at each of these starts: an idx, or an idxbuc whose buckets have this stride.
TreeNodePtr make_idx(std::vector<std::int64_t> starts, TreeNodePtr child);
TreeNodePtr make_idxbuc(const std::vector<std::int64_t>& starts, std::int64_t stride,
                        TreeNodePtr child);

/// `tree` moved by `shift`: in the first node below vecs that has displacements, else in a new one.
TreeNodePtr shifted(const TreeNodePtr& tree, std::int64_t shift);

/// Whether shifted() needs no new node.
bool absorbs_shift(const TreeNode& tree);

}  // namespace detail

}  // namespace halocline::dtype
