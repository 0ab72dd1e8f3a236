// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/reconstruct/cost_model.hpp"

#include "support/overload.hpp"

namespace halocline::dtype {

std::int64_t cost(const TreeNode& tree, const CostModel& costs) {
  const auto of = [&](const TreeNodePtr& child) { return cost(*child, costs); };
  return std::visit(
      Overload{
          [&](const Leaf&) { return costs.leaf; },
          [&](const Vec& t) { return costs.vec + of(t.child); },
          [&](const Idx& t) {
            return costs.idx + std::ssize(t.displacements) * costs.lookup + of(t.child);
          },
          [&](const IdxBuc& t) {
            return costs.idxbuc + 2 * std::ssize(t.displacements) * costs.lookup + of(t.child);
          },
          [&](const RuleBuc& t) {
            const auto own = t.rule.ends == nullptr ? costs.triangular
                                                    : costs.bucket + t.rule.count * costs.lookup;
            return own + of(t.child);
          },
          [&](const Strc& t) {
            auto sum = costs.strc + 2 * std::ssize(t.displacements) * costs.lookup;
            std::int64_t child = 0;
            for (std::size_t i = 0; i < t.children.size(); ++i) {
              if (i == 0 || t.children[i] != t.children[i - 1]) child = of(t.children[i]);
              sum += child;
            }
            return sum;
          },
      },
      tree.node);
}

}  // namespace halocline::dtype
