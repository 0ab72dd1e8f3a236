// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/reconstruct/type_path.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "dtype/reconstruct/bucket_count.hpp"
#include "dtype/reconstruct/bucket_rules.hpp"
#include "support/overload.hpp"

namespace halocline::dtype {

namespace {

using detail::Alternative;
using detail::kNoCost;
using detail::Subtree;

// Runs [KT15] Algorithm 6 with two states per repeated prefix (errata A.4): normalised, and with
// the shift of the sequence.
class Programme {
 public:
  Programme(const Sequence& sequence, std::span<const Subtree> kinds,
            const ReconstructOptions& options, const Alternative& alternative)
      : d_(sequence.displacements),
        kinds_(kinds),
        first_kind_(sequence.kinds.empty() ? 0 : sequence.kinds.front()),
        options_(options),
        alternative_(alternative),
        found_(repeated_prefixes(sequence, options.budget)),
        best_(found_.prefixes.size()) {}

  Reconstruction run() {
    for (std::size_t i = 0; i < best_.size(); ++i) {
      finish(i);
      extend(i);
      if (options_.idxbuc) extend_by_buckets(i);
      if (options_.bucket || options_.triangular) extend_by_rules(i);
    }
    const auto last = best_.size() - 1;
    const bool shift = d_.front() != 0;
    return {build(last, shift), best_[last][shift].cost, found_.comparisons, found_.complete};
  }

 private:
  enum class Root { leaf, vec, idx, idxbuc, bucket, triangular, other };
  struct Choice {
    std::int64_t cost = kNoCost;
    Root root = Root::leaf;
    std::size_t child = 0;  // index among the repeated prefixes
    bool child_shift = false;
    std::int64_t stride = 0;  // stride of an idxbuc
    TreeNodePtr other = nullptr;
    std::optional<detail::BucketFit> bucket = std::nullopt;
  };
  struct States {
    Choice normalised, shifted;
    Choice& operator[](bool shift) { return shift ? shifted : normalised; }
  };

  std::int64_t length(std::size_t i) const { return found_.prefixes[i].length; }
  std::int64_t start(std::int64_t element) const { return d_[static_cast<std::size_t>(element)]; }

  static void offer(Choice& best, Choice choice) {
    if (choice.cost < best.cost) best = std::move(choice);
  }

  // Tells if prefix i is a vector of a shorter prefix.
  bool is_vector(std::size_t i) const {
    const auto& all = found_.prefixes;
    return std::any_of(
        all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i),
        [&](const auto& p) { return length(i) % p.length == 0 && length(i) <= p.strided; });
  }

  // Finishes prefix i. All shorter prefixes have made their offers.
  void finish(std::size_t i) {
    auto& [normalised, shifted] = best_[i];
    if (length(i) == 1) offer(normalised, {kinds_[static_cast<std::size_t>(first_kind_)].cost});
    if (alternative_) {
      if (auto other = alternative_(length(i), normalised.cost, is_vector(i))) {
        if (detail::absorbs_shift(*other->root))
          offer(shifted, {other->cost, Root::other, i, true, 0, other->root});
        offer(normalised, {other->cost, Root::other, i, false, 0, other->root});
      }
    }
    const auto& costs = options_.costs;
    offer(shifted, {costs.idx + costs.lookup + normalised.cost, Root::idx, i});
    if (options_.idxbuc)
      offer(shifted, {costs.idxbuc + 2 * costs.lookup + normalised.cost, Root::idxbuc, i});
  }

  // Offers prefix i as the child of vec and idx to the prefixes that repeat it.
  void extend(std::size_t i) {
    const auto p = length(i);
    const auto& costs = options_.costs;
    for (auto j = i + 1; j < best_.size(); ++j) {
      const auto q = length(j);
      if (q % p != 0) continue;
      if (q <= found_.prefixes[i].strided)
        for (const bool shift : {false, true})
          offer(best_[j][shift], {costs.vec + best_[i][shift].cost, Root::vec, i, shift});
      for (const bool shift : {false, true}) {
        const auto [child, child_shift] = below_list(i, shift);
        offer(best_[j][shift],
              {costs.idx + q / p * costs.lookup + child, Root::idx, i, child_shift});
      }
    }
  }

  // Returns cost and state of prefix i below a node with displacements. The node makes the shift
  // unless the child does it for less.
  std::pair<std::int64_t, bool> below_list(std::size_t i, bool shift) const {
    const auto& [normalised, shifted] = best_[i];
    const bool child_shift = shift && shifted.cost < normalised.cost;
    return {child_shift ? shifted.cost : normalised.cost, child_shift};
  }

  // Offers prefix i as the child of idxbuc to the prefixes that repeat it. The count of distances
  // continues from prefix to prefix.
  void extend_by_buckets(std::size_t i) {
    const auto p = length(i);
    const auto& costs = options_.costs;
    detail::BucketCount count(d_.data(), p, costs);
    for (auto j = i + 1; j < best_.size(); ++j) {
      const auto q = length(j);
      if (q % p != 0) continue;
      const bool strided = q <= found_.prefixes[i].strided;
      while (!strided && count.children() < q / p) count.add();
      const auto buckets = strided ? 1 : count.buckets();
      const auto stride = strided ? start(p) - start(0) : count.stride();
      for (const bool shift : {false, true}) {
        const auto [child, child_shift] = below_list(i, shift);
        offer(best_[j][shift], {costs.idxbuc + 2 * buckets * costs.lookup + child, Root::idxbuc, i,
                                child_shift, stride});
      }
    }
  }

  // Offers prefix i as the child of buckets by a rule to the prefixes that repeat it. Such buckets
  // make all of the shift or leave it to the child.
  void extend_by_rules(std::size_t i) {
    const auto p = length(i);
    const auto& costs = options_.costs;
    for (auto j = i + 1; j < best_.size(); ++j) {
      const auto q = length(j);
      if (q % p != 0) continue;
      const auto all = starts(q, p, 0);
      // (shift of all, shift of the child)
      for (const auto& [shift, child_shift] :
           {std::pair{false, false}, std::pair{true, true}, std::pair{true, false}}) {
        auto& best = best_[j][shift];
        const auto child = best_[i][child_shift].cost;
        const auto base = base_of(shift, child_shift);
        if (options_.triangular && costs.triangular + child < best.cost &&
            detail::find_triangular(all, base))
          best = {costs.triangular + child, Root::triangular, i, child_shift};
        if (!options_.bucket) continue;
        const auto left = best.cost - child - costs.bucket;
        const auto most = costs.lookup == 0 ? kNoCost : left / costs.lookup;
        if (left <= 0) continue;
        if (const auto found = detail::find_bucket(all, base, most))
          offer(best, {costs.bucket + found->count * costs.lookup + child, Root::bucket, i,
                       child_shift, 0, nullptr, found});
      }
    }
  }

  // Returns the base from which the starts of children are counted.
  std::int64_t base_of(bool shift, bool child_shift) const {
    return shift && !child_shift ? 0 : start(0);
  }

  // Returns the starts of all copies of P_p in P_q, counted from `base`.
  std::vector<std::int64_t> starts(std::int64_t q, std::int64_t p, std::int64_t base) const {
    std::vector<std::int64_t> out;
    out.reserve(static_cast<std::size_t>(q / p));
    for (std::int64_t at = 0; at < q; at += p) out.push_back(start(at) - base);
    return out;
  }

  TreeNodePtr build(std::size_t i, bool shift) {
    const auto& choice = best_[i][shift];
    const auto q = length(i), p = length(choice.child);
    const auto base = base_of(shift, choice.child_shift);
    switch (choice.root) {
      case Root::leaf:
        return kinds_[static_cast<std::size_t>(first_kind_)].root;
      case Root::other:
        return shift ? detail::shifted(choice.other, start(0)) : choice.other;
      case Root::vec:
        return tree_node(Vec{q / p, start(p) - start(0), build(choice.child, choice.child_shift)});
      case Root::idx:
        return detail::make_idx(starts(q, p, base), build(choice.child, choice.child_shift));
      case Root::idxbuc:
        return detail::make_idxbuc(starts(q, p, base), choice.stride,
                                   build(choice.child, choice.child_shift));
      case Root::bucket:
        return tree_node(RuleBuc{detail::bucket_rule(starts(q, p, 0), base, *choice.bucket),
                                 choice.bucket->stride, build(choice.child, choice.child_shift)});
      case Root::triangular: {
        auto found = detail::find_triangular(starts(q, p, 0), base);
        return tree_node(RuleBuc{std::move(found->rule), found->stride,
                                 build(choice.child, choice.child_shift)});
      }
    }
    return nullptr;
  }

  std::span<const std::int64_t> d_;
  std::span<const Subtree> kinds_;
  std::int32_t first_kind_;
  const ReconstructOptions& options_;
  const Alternative& alternative_;
  RepeatedPrefixes found_;
  std::vector<States> best_;
};

}  // namespace

namespace detail {

TreeNodePtr make_idx(std::vector<std::int64_t> starts, TreeNodePtr child) {
  return tree_node(Idx{std::move(starts), std::move(child)});
}

TreeNodePtr make_idxbuc(const std::vector<std::int64_t>& starts, std::int64_t stride,
                        TreeNodePtr child) {
  IdxBuc out{{}, {}, stride, std::move(child)};
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (i > 0 && starts[i] - starts[i - 1] == stride) {
      ++out.blocklengths.back();
    } else {
      out.displacements.push_back(starts[i]);
      out.blocklengths.push_back(1);
    }
  }
  return tree_node(std::move(out));
}

bool absorbs_shift(const TreeNode& tree) {
  if (const auto* vec = std::get_if<Vec>(&tree.node)) return absorbs_shift(*vec->child);
  if (const auto* by_rule = std::get_if<RuleBuc>(&tree.node)) return absorbs_shift(*by_rule->child);
  return !std::holds_alternative<Leaf>(tree.node);
}

TreeNodePtr shifted(const TreeNodePtr& tree, std::int64_t shift) {
  if (!absorbs_shift(*tree)) return tree_node(Idx{{shift}, tree});
  return std::visit(
      [=](auto t) -> TreeNodePtr {
        if constexpr (requires { t.displacements; })
          for (auto& displacement : t.displacements) displacement += shift;
        else if constexpr (requires { t.child; })
          t.child = shifted(t.child, shift);
        return tree_node(std::move(t));
      },
      tree->node);
}

Reconstruction reconstruct_path(const Sequence& sequence, std::span<const Subtree> kinds,
                                const ReconstructOptions& options, const Alternative& alternative) {
  return Programme(sequence, kinds, options, alternative).run();
}

}  // namespace detail

Reconstruction reconstruct_path(const Sequence& sequence, const Leaf& leaf,
                                const ReconstructOptions& options) {
  const Subtree only[] = {{tree_node(leaf), options.costs.leaf}};
  return detail::reconstruct_path(sequence, only, options, {});
}

std::int64_t leaves_of(const TreeNode& tree) {
  return std::visit(
      Overload{
          [](const Leaf&) { return std::int64_t{1}; },
          [](const Vec& t) { return t.count * leaves_of(*t.child); },
          [](const Idx& t) { return std::ssize(t.displacements) * leaves_of(*t.child); },
          [](const IdxBuc& t) {
            return std::accumulate(t.blocklengths.begin(), t.blocklengths.end(), std::int64_t{0}) *
                   leaves_of(*t.child);
          },
          [](const RuleBuc& t) { return t.rule.elements() * leaves_of(*t.child); },
          [](const Strc& t) {
            std::int64_t sum = 0, leaves = 0;
            for (std::size_t i = 0; i < t.children.size(); ++i) {
              if (i == 0 || t.children[i] != t.children[i - 1]) leaves = leaves_of(*t.children[i]);
              sum += leaves;
            }
            return sum;
          },
      },
      tree.node);
}

std::vector<std::int64_t> flatten(const TreeNode& tree) {
  std::vector<std::int64_t> out;
  for_each_leaf(tree, 0, [&](const Leaf&, std::int64_t at) { out.push_back(at); });
  return out;
}

}  // namespace halocline::dtype
