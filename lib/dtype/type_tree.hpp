// SPDX-License-Identifier: BSD-3-Clause
// Defines type trees, and translates MPI datatypes into them: the first step to a pack plan.
//
//     MPI_Datatype  -> TypeTree        here; datatype.cpp asks MPI for constructors and arguments
//     TypeTree      -> CanonicalForm   canonical/dataloop.hpp: fewest, longest loops
//     CanonicalForm -> PackPlan        pack/pack_plan.hpp: loops in the order of their execution
//
// A subarray of 4 x 6 x 2 of 4 x 6 x 8 doubles that starts at (0, 0, 1) becomes the tree
//
//     idx(1,<8>,vec(4,384,vec(6,64,vec(2,8,leaf(8)))))
//
// The nodes are constructors of [KT15] and the dataloops of [RMG03]: contig and vector are Vec,
// blockindexed is Idx, indexed is IdxBuc, struct is Strc. RuleBuc stands for the constructors that
// MPI does not have. lib/dtype/errata.md lists the papers.
//
// Best peer: [PEA21] section 3.1 translates into DenseData and StreamData, each with an offset of
// its own. Here a node has no offset, and a shift is an Idx of one displacement as in [KT15]. So
// one kind of tree also holds index lists.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "dtype/basic_type.hpp"
#include "dtype/bucket_rule.hpp"
#include "dtype/type_expr.hpp"
#include "support/error.hpp"

namespace halocline::dtype {

/// Holds size and bounds of one instance of a datatype, in bytes relative to the buffer argument.
/// Repetition uses `lb` and `extent`. `true_lb` and `true_extent` enclose the data, and are 0 if
/// there is none.
struct TypeBounds {
  std::int64_t size = 0;
  std::int64_t lb = 0;
  std::int64_t extent = 0;
  std::int64_t true_lb = 0;
  std::int64_t true_extent = 0;
  bool operator==(const TypeBounds&) const = default;
};

/// Returns the bounds of `expr`, by the rules of type_map(). O(constructor arguments), whatever the
/// counts are. Throws ConfigError for sizes or displacements beyond 2^61 bytes.
TypeBounds type_bounds(const TypeExpr& expr);

struct TreeNode;
using TreeNodePtr = std::shared_ptr<const TreeNode>;

/// Describes `bytes` consecutive bytes, of this basic type if it is known.
struct Leaf {
  std::int64_t bytes;
  const BasicType* type = nullptr;
};
/// Describes `count` children, `stride` bytes apart, the first at displacement 0.
struct Vec {
  std::int64_t count;
  std::int64_t stride;
  TreeNodePtr child;
};
/// Describes one child at each displacement (bytes), in this order.
struct Idx {
  std::vector<std::int64_t> displacements;
  TreeNodePtr child;
};

/// Describes buckets of a child: bucket i has blocklengths[i] copies, `stride` bytes apart, the
/// first at displacements[i] (bytes).
struct IdxBuc {
  std::vector<std::int64_t> blocklengths, displacements;
  std::int64_t stride;
  TreeNodePtr child;
};
/// Describes buckets of a child by a rule: bucket i has rule.length(i) copies. They are `stride`
/// bytes apart, the first at rule.displacement(i). The node has no shift of its own: rule.start is
/// 0.
struct RuleBuc {
  BucketRule rule;
  std::int64_t stride;
  TreeNodePtr child;
};
/// Describes a child of its own at each displacement (bytes), in this order.
struct Strc {
  std::vector<std::int64_t> displacements;
  std::vector<TreeNodePtr> children;
};

struct TreeNode {
  std::variant<Leaf, Vec, Idx, IdxBuc, RuleBuc, Strc> node;
};

/// Returns the buckets of `node` as lists of lengths and displacements. O(buckets).
IdxBuc with_lists(const RuleBuc& node);

/// Makes a node of `value`.
template <class Node>
TreeNodePtr tree_node(Node value) {
  return std::make_shared<const TreeNode>(std::move(value));  // made in place, which costs least
}

/// Calls visit(leaf, displacement) for every leaf of a tree that stands at `at`, in order. Returns
/// true if there is a leaf. O(leaves): loops over nodes without leaves end at once.
template <class Visit>
bool for_each_leaf(const TreeNode& tree, std::int64_t at, const Visit& visit) {
  if (const auto* leaf = std::get_if<Leaf>(&tree.node)) {
    visit(*leaf, at);
    return true;
  }
  if (const auto* members = std::get_if<Strc>(&tree.node)) {
    bool any = false;
    for (std::size_t i = 0; i < members->children.size(); ++i)
      any = for_each_leaf(*members->children[i], at + members->displacements[i], visit) || any;
    return any;
  }
  if (const auto* vec = std::get_if<Vec>(&tree.node)) {
    for (std::int64_t i = 0; i < vec->count; ++i)
      if (!for_each_leaf(*vec->child, at + i * vec->stride, visit)) return false;
    return vec->count > 0;
  }
  if (const auto* idx = std::get_if<Idx>(&tree.node)) {
    for (const auto displacement : idx->displacements)
      if (!for_each_leaf(*idx->child, at + displacement, visit)) return false;
    return !idx->displacements.empty();
  }
  bool any = false;
  const auto bucket = [&](std::int64_t length, std::int64_t first, std::int64_t stride,
                          const TreeNode& child) {
    for (std::int64_t j = 0; j < length; ++j)
      if (!for_each_leaf(child, first + j * stride, visit)) return false;
    any = any || length > 0;
    return true;
  };
  if (const auto* buckets = std::get_if<IdxBuc>(&tree.node)) {
    for (std::size_t i = 0; i < buckets->displacements.size(); ++i)
      if (!bucket(buckets->blocklengths[i], at + buckets->displacements[i], buckets->stride,
                  *buckets->child))
        return false;
  } else {
    const auto& [rule, stride, child] = std::get<RuleBuc>(tree.node);
    for (std::int64_t i = 0; i < rule.count; ++i)
      if (!bucket(rule.length(i), at + rule.displacement(i), stride, *child)) return false;
  }
  return any;
}

/// Holds a datatype: a tree of nodes, and the bounds of one instance. Immutable; equal subtrees may
/// be shared.
struct TypeTree {
  TreeNodePtr root;
  TypeBounds bounds;
};

/// Translates a datatype expression, constructor by constructor, each by a case of [KT15]:
///
/// - contiguous is a Vec; vector and hvector are two.
/// - Indexed types are an IdxBuc, or an Idx if all block lengths are equal.
/// - struct is a Strc. With one member it is a Vec, moved by an Idx.
/// - subarray is one Vec per dimension, below an Idx that holds its start.
/// - darray is built like subarray, with a Strc if the last block of a dimension is shorter.
/// - resized changes only the bounds; dup changes nothing.
/// - A pair type (short_int) is a Strc of Leafs.
/// - bucket, stretched and triangular types are a RuleBuc. If all lengths are equal, they are Vecs.
/// - Bounded and circular vectors are a Strc of the blocks that lower() lists.
///
/// Vecs of count 1 and an Idx of the one displacement 0 are left out. Equal neighbours in a struct
/// share their node. [PEA21] section 3.1, with the argument order of errata B.10, for all
/// combiners.
///
/// One pass from the leaves up. O(constructor arguments); O(turns) for a circular vector. Throws
/// ConfigError for sizes or displacements beyond 2^61 bytes.
TypeTree translate(const TypeExpr& expr);

/// Decodes and translates a handle in one step. Local. Returns UnsupportedDatatype where decode()
/// does.
Result<TypeTree> translate(MPI_Datatype handle);

/// Returns one line in the notation of [KT15], such as "idx(1,<10520>,vec(8,128,leaf(64)))".
/// Further nodes are:
///
///     idxbuc(2,<lengths>,<displacements>,stride,child)            an index bucket
///     bucket(2,size,<lengths>,stride,child)                       index buckets by a rule
///     stretched(2,<lengths>,own,before,stride,child)
///     triangular(count,first,change,distance,stride,child)
///     strc(2,<displacements>,<child,child>)                       a struct
std::string to_string(const TreeNode& node);

}  // namespace halocline::dtype
