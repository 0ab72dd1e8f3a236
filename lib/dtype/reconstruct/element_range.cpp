// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/reconstruct/element_range.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include "dtype/reconstruct/normalize.hpp"
#include "dtype/reconstruct/typed_sequence.hpp"
#include "dtype/type_tree.hpp"
#include "support/error.hpp"
#include "support/overload.hpp"

namespace halocline::dtype {

namespace {

// Counts the leaves of trees; each leaf is a basic element.
class LeafCounts {
 public:
  std::int64_t operator()(const TreeNodePtr& tree) {
    if (const auto found = counts_.find(tree); found != counts_.end()) return found->second;
    const auto count =
        std::visit(Overload{
                       [](const Leaf&) { return std::int64_t{1}; },
                       [&](const Vec& t) { return t.count * (*this)(t.child); },
                       [&](const Idx& t) { return std::ssize(t.displacements) * (*this)(t.child); },
                       [&](const IdxBuc& t) {
                         return std::accumulate(t.blocklengths.begin(), t.blocklengths.end(),
                                                std::int64_t{0}) *
                                (*this)(t.child);
                       },
                       [&](const RuleBuc& t) { return t.rule.elements() * (*this)(t.child); },
                       [&](const Strc& t) {
                         std::int64_t sum = 0;
                         for (const auto& child : t.children) sum += (*this)(child);
                         return sum;
                       },
                   },
                   tree->node);
    return counts_[tree] = count;
  }

 private:
  // Keys own their trees: otherwise another tree might get the address of one that is gone.
  std::unordered_map<TreeNodePtr, std::int64_t> counts_;
};

// Cuts stretches of elements out of trees.
class Cut {
 public:
  LeafCounts& elements() { return elements_; }

  // Appends the nodes for elements [first, last) of `tree` at displacement `at`.
  void append(const TreeNodePtr& tree, std::int64_t at, ElementRange range) {
    if (range.first >= range.last) return;
    if (range == ElementRange{0, elements_(tree)}) return add(tree, at);
    std::visit(Overload{
                   [](const Leaf&) {},  // one element is never cut
                   [&](const Vec& t) {
                     in_children(
                         t.child, range, at, [&](std::int64_t i) { return i * t.stride; },
                         [&](std::int64_t i, std::int64_t n) {
                           add(tree_node(Vec{n, t.stride, t.child}), at + i * t.stride);
                         });
                   },
                   [&](const Idx& t) {
                     const auto where = [&](std::int64_t i) {
                       return t.displacements[static_cast<std::size_t>(i)];
                     };
                     in_children(t.child, range, at, where, [&](std::int64_t i, std::int64_t n) {
                       const auto begin = t.displacements.begin() + i;
                       add(tree_node(Idx{{begin, begin + n}, t.child}), at);
                     });
                   },
                   [&](const IdxBuc& t) { in_buckets(t, at, range); },
                   [&](const RuleBuc& t) { in_buckets(with_lists(t), at, range); },
                   [&](const Strc& t) {
                     std::int64_t before = 0;
                     for (std::size_t i = 0; i < t.children.size() && before < range.last; ++i) {
                       const auto count = elements_(t.children[i]);
                       append(t.children[i], at + t.displacements[i],
                              {std::max<std::int64_t>(range.first - before, 0),
                               std::min(range.last - before, count)});
                       before += count;
                     }
                   },
               },
               tree->node);
  }

  // Returns the tree of all pieces. One piece of the type is as good as the type is. Several pieces
  // are lists of few entries, so a short exact search is enough.
  TreeNodePtr take() {
    if (out_.children.size() == 1 && out_.displacements.front() == 0) return out_.children.front();
    return normalize(tree_node(std::move(out_)), {.exact = 16}).root;
  }

 private:
  void add(const TreeNodePtr& tree, std::int64_t at) {
    out_.displacements.push_back(at);
    out_.children.push_back(tree);
  }

  // Appends a range of children, child i at displacement(i). The first and the last one may be cut.
  // `whole(i, n)` adds n whole children from child i on.
  template <class Displacement, class Whole>
  void in_children(const TreeNodePtr& child, ElementRange range, std::int64_t at,
                   Displacement displacement, Whole whole) {
    const auto each = elements_(child);
    const auto first = range.first / each, last = range.last / each;
    const auto begin = range.first % each, end = range.last % each;
    if (first == last) return append(child, at + displacement(first), {begin, end});
    if (begin > 0) append(child, at + displacement(first), {begin, each});
    const auto from = begin > 0 ? first + 1 : first;
    if (last > from) whole(from, last - from);
    if (end > 0) append(child, at + displacement(last), {0, end});
  }

  void in_buckets(const IdxBuc& t, std::int64_t at, ElementRange range) {
    std::vector<std::int64_t> ends(t.blocklengths.size());
    std::partial_sum(t.blocklengths.begin(), t.blocklengths.end(), ends.begin());
    // The bucket of child i is the first that ends behind child i.
    const auto bucket_of = [&](std::int64_t i) {
      return static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), i) - ends.begin());
    };
    const auto where = [&](std::int64_t i) {
      const auto bucket = bucket_of(i);
      return t.displacements[bucket] + (i - (ends[bucket] - t.blocklengths[bucket])) * t.stride;
    };
    in_children(t.child, range, at, where, [&](std::int64_t i, std::int64_t n) {
      IdxBuc cut{{}, {}, t.stride, t.child};
      for (auto bucket = bucket_of(i); n > 0; bucket = bucket_of(i)) {
        const auto length = std::min(ends[bucket] - i, n);
        cut.blocklengths.push_back(length);
        cut.displacements.push_back(where(i));
        i += length;
        n -= length;
      }
      add(tree_node(std::move(cut)), at);
    });
  }

  LeafCounts elements_;
  Strc out_;
};

[[noreturn]] void throw_no_range(const ElementRange& range, const std::string& why) {
  throw ConfigError("no such elements (" + std::to_string(range.first) + " to " +
                    std::to_string(range.last) + ": " + why + "): count basic elements from 0 on");
}

}  // namespace

std::int64_t basic_element_count(const TypeExpr& expr) {
  return LeafCounts()(translate(expr).root);
}

TypeExprPtr element_ranges(const TypeExpr& expr, const std::vector<ElementRange>& ranges) {
  const auto tree = translate(expr);
  Cut cut;
  const auto each = cut.elements()(tree.root);
  constexpr std::int64_t kFarthest = std::int64_t{1} << 61;
  const auto extent = std::max<std::int64_t>(std::abs(tree.bounds.extent), 1);
  for (const auto& range : ranges) {
    if (range.first < 0 || range.last < range.first) throw_no_range(range, "that is no range");
    if (range.first == range.last) continue;
    if (each == 0) throw_no_range(range, "the type has none");
    const auto instances = (range.last - 1) / each + 1;
    if (instances > kFarthest / extent) throw_no_range(range, "they are beyond 2^61 bytes");
    cut.append(tree_node(Vec{instances, tree.bounds.extent, tree.root}), 0, range);
  }
  const auto root = cut.take();
  const auto data = type_bounds(*to_type_expr({root, {}}));
  return to_type_expr(
      {root, {data.size, data.true_lb, data.true_extent, data.true_lb, data.true_extent}});
}

}  // namespace halocline::dtype
