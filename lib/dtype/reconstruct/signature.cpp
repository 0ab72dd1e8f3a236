// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/reconstruct/signature.hpp"

#include <cstdint>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "dtype/reconstruct/normalize.hpp"
#include "dtype/reconstruct/typed_sequence.hpp"
#include "dtype/support/overload.hpp"
#include "dtype/type_tree.hpp"

namespace halocline::dtype {

namespace {

struct Packed {
  TreeNodePtr tree;  // with all leaves one behind the other
  std::int64_t size;
};

class Compaction {
 public:
  const Packed& operator()(const TreeNodePtr& tree) {
    if (const auto found = packed_.find(tree.get()); found != packed_.end()) return found->second;
    auto out = std::visit(
        Overload{
            [](const Leaf& t) -> Packed {
              return {tree_node(t), t.bytes};
            },
            [&](const Vec& t) { return times(t.count, t.child); },
            [&](const Idx& t) { return times(std::ssize(t.displacements), t.child); },
            [&](const IdxBuc& t) {
              return times(
                  std::accumulate(t.blocklengths.begin(), t.blocklengths.end(), std::int64_t{0}),
                  t.child);
            },
            [&](const RuleBuc& t) { return times(t.rule.elements(), t.child); },
            [&](const Strc& t) -> Packed {
              Strc members;
              std::int64_t size = 0;
              for (const auto& child : t.children) {
                const auto& member = (*this)(child);
                members.displacements.push_back(size);
                members.children.push_back(member.tree);
                size += member.size;
              }
              return {tree_node(std::move(members)), size};
            },
        },
        tree->node);
    return packed_[tree.get()] = std::move(out);
  }

 private:
  Packed times(std::int64_t count, const TreeNodePtr& child) {
    const auto& one = (*this)(child);
    return {tree_node(Vec{count, one.size, one.tree}), count * one.size};
  }

  std::unordered_map<const TreeNode*, Packed> packed_;
};

}  // namespace

TypeExprPtr signature_type(const TypeExpr& expr) {
  const auto tree = translate(expr);
  const auto [packed, size] = Compaction()(tree.root);
  const TypeBounds bounds{size, 0, size, 0, size};
  return to_type_expr({normalize(packed).root, bounds});
}

}  // namespace halocline::dtype
