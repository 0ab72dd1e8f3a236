// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/reconstruct/normalize.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "support/overload.hpp"

namespace halocline::dtype {

namespace {

using detail::Elements;
using detail::Subtree;

// Holds a subtree in both of its states. A subtree without leaves has no trees.
struct Normal {
  std::int64_t shift = 0;          // displacement of the first leaf
  Subtree normalised{nullptr, 0};  // with the first leaf at 0
  Subtree standing{nullptr, 0};    // in its own place
  std::int64_t leaves = 0;         // in the flattened tree
  std::int64_t entries = 0;        // nodes and list entries of the original tree
};

class Normalizer {
 public:
  explicit Normalizer(const TreeOptions& options) : options_(options), costs_(options.costs) {}

  const Normal& operator()(const TreeNodePtr& tree) {
    // Equal members of a struct are often copies of each other. They are normalised once.
    const auto number = identity(tree);
    if (const auto found = known_.find(number); found != known_.end()) return found->second;
    auto out = std::visit([&](const auto& t) { return of(t); }, tree->node);
    join_levels(*tree, out);
    flatten_if_small(*tree, out);
    return known_[number] = std::move(out);
  }

  std::int64_t comparisons() const { return comparisons_; }

 private:
  Normal of(const Leaf& t) {
    const Subtree leaf{tree_node(t), costs_.leaf};
    return {0, leaf, leaf, 1, 1};
  }

  Normal of(const Vec& t) {
    auto out = (*this)(t.child);
    out.entries += 1;
    if (t.count == 1 || out.leaves == 0) return out;
    if (t.count == 0) return {.entries = out.entries};
    out.leaves *= t.count;
    out.normalised = repeated(t.count, t.stride, out.normalised);
    out.standing =
        cheaper(repeated(t.count, t.stride, out.standing), moved(out.normalised, out.shift));
    return out;
  }

  Normal of(const Idx& t) {
    const auto& child = (*this)(t.child);
    Elements all{{}, {}, {child.normalised}};
    for (const auto displacement : t.displacements) all.add(displacement + child.shift, 0);
    const auto n = std::ssize(t.displacements);
    return of_elements(std::move(all), n * child.leaves, child.entries + 1 + n);
  }

  Normal of(const IdxBuc& t) {
    const auto& child = (*this)(t.child);
    const auto n = std::ssize(t.displacements);
    const auto children =
        std::accumulate(t.blocklengths.begin(), t.blocklengths.end(), std::int64_t{0});
    const auto entries = child.entries + 1 + 2 * n;
    if (child.leaves == 0 || children == 0) return {.entries = entries};
    IdxBuc buckets{{}, {}, t.stride, child.normalised.root};
    for (std::size_t i = 0; i < t.displacements.size(); ++i)
      if (t.blocklengths[i] > 0)
        append_bucket(buckets, t.displacements[i] + child.shift, t.blocklengths[i]);
    auto all = vectors_of(buckets, child.normalised);
    auto out = of_elements(std::move(all), children * child.leaves, entries);
    offer(out, std::move(buckets), child.normalised.cost);
    return out;
  }

  // Tries the rule over the normalised child, and the buckets as lists. A triangular type may have
  // far more buckets than its node has numbers, so a long one is not listed.
  Normal of(const RuleBuc& t) {
    constexpr std::int64_t kFewEnoughForLists = 64;
    const auto& child = (*this)(t.child);
    const auto& rule = t.rule;
    const auto elements = rule.elements();
    const auto entries = child.entries + 1 + (rule.ends == nullptr ? 0 : rule.count);
    if (child.leaves == 0 || elements == 0) return {.entries = entries};
    const auto first = rule.displacement(rule.bucket_of(0));
    Normal out;
    if (rule.ends != nullptr || rule.count <= kFewEnoughForLists) out = of(with_lists(t));
    out.shift = first + child.shift;
    out.leaves = elements * child.leaves;
    out.entries = entries;
    const auto over = [&](const Subtree& body) -> Subtree {
      const auto root = tree_node(RuleBuc{rule, t.stride, body.root});
      return {root, cost(*root, costs_)};
    };
    // Empty buckets in front are a shift that the node itself makes.
    if (first == 0) out.normalised = cheaper(std::move(out.normalised), over(child.normalised));
    out.standing = cheaper(std::move(out.standing), over(child.standing));
    if (out.normalised.root == nullptr) out.normalised = moved(out.standing, -out.shift);
    out.standing = cheaper(std::move(out.standing), moved(out.normalised, out.shift));
    return out;
  }

  Normal of(const Strc& t) {
    Elements all;
    std::unordered_map<std::int32_t, std::int32_t> kinds;  // by identity
    std::int64_t leaves = 0, entries = 1 + 2 * std::ssize(t.children);
    for (std::size_t i = 0; i < t.children.size(); ++i) {
      const auto& child = (*this)(t.children[i]);
      entries += child.entries;
      leaves += child.leaves;
      if (child.leaves == 0) continue;
      const auto [kind, is_new] = kinds.try_emplace(identity(child.normalised.root),
                                                    static_cast<std::int32_t>(kinds.size()));
      if (is_new) all.trees.push_back(child.normalised);
      all.add(t.displacements[i] + child.shift, kind->second);
    }
    return of_elements(std::move(all), leaves, entries);
  }

  // Numbers a tree; trees that look the same have the same number.
  std::int32_t identity(const TreeNodePtr& tree) {
    if (const auto found = identities_.find(tree.get()); found != identities_.end())
      return found->second.second;
    std::vector<std::int64_t> key = {static_cast<std::int64_t>(tree->node.index())};
    const auto append = [&](const std::vector<std::int64_t>& list) {
      key.insert(key.end(), list.begin(), list.end());
    };
    std::visit(Overload{
                   [&](const Leaf& t) {
                     key.push_back(t.bytes);
                     key.push_back(reinterpret_cast<std::intptr_t>(t.type));
                   },
                   [&](const Vec& t) {
                     append({t.count, t.stride, identity(t.child)});
                   },
                   [&](const Idx& t) {
                     append(t.displacements);
                     key.push_back(identity(t.child));
                   },
                   [&](const IdxBuc& t) {
                     append(t.displacements);
                     append(t.blocklengths);
                     append({t.stride, identity(t.child)});
                   },
                   [&](const RuleBuc& t) {
                     const auto& r = t.rule;
                     append({r.count, r.ends == nullptr, r.first, r.change, r.distance, r.own,
                             r.before, t.stride, identity(t.child)});
                     if (r.ends != nullptr) append(*r.ends);
                   },
                   [&](const Strc& t) {
                     append(t.displacements);
                     for (const auto& child : t.children) key.push_back(identity(child));
                   },
               },
               tree->node);
    const auto number =
        looks_.try_emplace(std::move(key), static_cast<std::int32_t>(looks_.size())).first->second;
    identities_[tree.get()] = {tree, number};
    return number;
  }

  Subtree repeated(std::int64_t count, std::int64_t stride, const Subtree& body) const {
    if (count == 1) return body;
    const auto* inner = std::get_if<Vec>(&body.root->node);
    if (inner != nullptr && stride == inner->count * inner->stride)
      return {tree_node(Vec{count * inner->count, inner->stride, inner->child}), body.cost};
    return {tree_node(Vec{count, stride, body.root}), costs_.vec + body.cost};
  }

  Subtree moved(const Subtree& tree, std::int64_t shift) const {
    if (shift == 0) return tree;
    return {detail::shifted(tree.root, shift),
            tree.cost + (detail::absorbs_shift(*tree.root) ? 0 : costs_.idx + costs_.lookup)};
  }

  static Subtree cheaper(Subtree a, Subtree b) {
    if (a.root == nullptr) return b;
    return b.root == nullptr || a.cost <= b.cost ? std::move(a) : std::move(b);
  }

  void offer(Normal& best, const IdxBuc& buckets, std::int64_t child_cost) const {
    if (buckets.displacements.size() == 1) {
      const auto vector =
          repeated(buckets.blocklengths.front(), buckets.stride, {buckets.child, child_cost});
      best.standing = cheaper(std::move(best.standing), moved(vector, best.shift));
      best.normalised = cheaper(std::move(best.normalised), vector);
      return;
    }
    const auto cost =
        costs_.idxbuc + 2 * std::ssize(buckets.displacements) * costs_.lookup + child_cost;
    const Subtree standing{tree_node(buckets), cost};
    best.normalised =
        cheaper(std::move(best.normalised), {detail::shifted(standing.root, -best.shift), cost});
    best.standing = cheaper(std::move(best.standing), standing);
  }

  // Normalises trees that stand one behind the other.
  Normal of_elements(Elements all, std::int64_t leaves, std::int64_t entries) {
    if (leaves == 0) return {.entries = entries};
    const auto buckets = continued_vectors(all);
    Normal out{.shift = all.displacements.front(), .leaves = leaves, .entries = entries};
    auto origin = all;
    for (auto& displacement : origin.displacements) displacement -= out.shift;
    out.normalised = reconstructed(origin);
    out.standing = out.shift == 0 ? out.normalised
                                  : cheaper(reconstructed(all), moved(out.normalised, out.shift));
    if (buckets) offer(out, buckets->node, buckets->child_cost);
    return out;
  }

  struct Buckets {
    IdxBuc node;
    std::int64_t child_cost;
  };

  // Joins vectors of one kind that continue each other. Returns all of them as buckets of their
  // bodies; nullopt if the elements are not vectors of one kind.
  std::optional<Buckets> continued_vectors(Elements& all) const {
    const auto vector = all.trees.front();
    const auto* body = std::get_if<Vec>(&vector.root->node);
    if (body == nullptr || all.trees.size() > 1) return std::nullopt;
    Buckets out{{{}, {}, body->stride, body->child}, vector.cost - costs_.vec};
    for (const auto at : all.displacements) append_bucket(out.node, at, body->count);
    const auto& [lengths, displacements, stride, child] = out.node;
    if (lengths.size() == all.displacements.size()) return out;
    all = vectors_of(out.node, {child, out.child_cost});
    return out;
  }

  static void append_bucket(IdxBuc& buckets, std::int64_t at, std::int64_t length) {
    if (!buckets.displacements.empty() &&
        at == buckets.displacements.back() + buckets.blocklengths.back() * buckets.stride) {
      buckets.blocklengths.back() += length;
    } else {
      buckets.displacements.push_back(at);
      buckets.blocklengths.push_back(length);
    }
  }

  // Returns each bucket as a vector.
  Elements vectors_of(const IdxBuc& buckets, const Subtree& child) const {
    Elements all;
    std::map<std::int64_t, std::int32_t> kinds;  // by length
    for (std::size_t i = 0; i < buckets.displacements.size(); ++i) {
      const auto length = buckets.blocklengths[i];
      const auto [kind, is_new] =
          kinds.try_emplace(length, static_cast<std::int32_t>(kinds.size()));
      if (is_new) all.trees.push_back(repeated(length, buckets.stride, child));
      all.add(buckets.displacements[i], kind->second);
    }
    return all;
  }

  Subtree reconstructed(const Elements& all) {
    auto found = detail::reconstruct_tree(all.view(), all.trees, options_);
    comparisons_ += found.comparisons;
    return {std::move(found.root), found.cost};
  }

  // Returns the number of elements that are few for the size of this tree.
  static std::int64_t few(const Normal& tree) {
    constexpr std::int64_t kElements = 64, kElementsPerEntry = 4;
    return kElements + kElementsPerEntry * tree.entries;
  }

  // Tries two or more levels of vec and idx as one list over the nodes below: that may be cheaper.
  void join_levels(const TreeNode& tree, Normal& best) {
    if (best.leaves < 2) return;
    std::vector<std::int64_t> starts = {0};
    const auto* level = &tree;
    for (int levels = 1;; ++levels) {
      std::vector<std::int64_t> offsets;
      const TreeNodePtr* child = nullptr;
      if (const auto* vec = std::get_if<Vec>(&level->node)) {
        if (vec->count > few(best)) return;
        child = &vec->child;
        for (std::int64_t i = 0; i < vec->count; ++i) offsets.push_back(i * vec->stride);
      } else if (const auto* idx = std::get_if<Idx>(&level->node)) {
        child = &idx->child;
        offsets = idx->displacements;
      } else {
        return;
      }
      if (std::ssize(starts) * std::ssize(offsets) > few(best)) return;
      std::vector<std::int64_t> next;
      for (const auto start : starts)
        for (const auto offset : offsets) next.push_back(start + offset);
      starts = std::move(next);
      level = child->get();
      if (levels == 1) continue;
      const auto& below = (*this)(*child);
      Elements all{{}, {}, {below.normalised}};
      for (const auto start : starts) all.add(start + below.shift, 0);
      auto joined = of_elements(std::move(all), best.leaves, best.entries);
      best.normalised = cheaper(std::move(best.normalised), std::move(joined.normalised));
      best.standing = cheaper(std::move(best.standing), std::move(joined.standing));
    }
  }

  // Tries the flattened tree if the tree has few leaves for its size.
  void flatten_if_small(const TreeNode& tree, Normal& best) {
    if (best.leaves < 2 || best.leaves > few(best) ||
        best.standing.cost <= costs_.vec + costs_.leaf)
      return;
    Elements all;
    std::map<std::pair<std::int64_t, const BasicType*>, std::int32_t> kinds;
    for_each_leaf(tree, 0, [&](const Leaf& leaf, std::int64_t at) {
      const auto [kind, is_new] =
          kinds.try_emplace({leaf.bytes, leaf.type}, static_cast<std::int32_t>(kinds.size()));
      if (is_new) all.trees.push_back({tree_node(leaf), costs_.leaf});
      all.add(at, kind->second);
    });
    best.standing = cheaper(std::move(best.standing), reconstructed(all));
    for (auto& displacement : all.displacements) displacement -= best.shift;
    best.normalised = cheaper(std::move(best.normalised), reconstructed(all));
  }

  const TreeOptions& options_;
  const CostModel& costs_;
  std::int64_t comparisons_ = 0;
  std::unordered_map<std::int32_t, Normal> known_;  // by identity
  std::unordered_map<const TreeNode*, std::pair<TreeNodePtr, std::int32_t>> identities_;
  std::map<std::vector<std::int64_t>, std::int32_t> looks_;
};

}  // namespace

Reconstruction normalize(const TreeNodePtr& tree, const TreeOptions& options) {
  Normalizer normalizer(options);
  auto best = normalizer(tree).standing;
  if (best.root == nullptr) best = {tree_node(Strc{}), options.costs.strc};
  // The costs so far are upper bounds: vectors of reconstructed lists may continue the vectors
  // below.
  const auto given = cost(*tree, options.costs);
  if (best.cost > given) best = {tree, given};
  return {best.root, best.cost, normalizer.comparisons(), false};
}

}  // namespace halocline::dtype
