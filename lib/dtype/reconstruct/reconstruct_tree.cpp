// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/reconstruct/reconstruct_tree.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "dtype/reconstruct/bucket_count.hpp"

namespace halocline::dtype {

namespace {

using detail::Elements;
using detail::kNoCost;
using detail::Subtree;

// Returns the kind of an element.
std::int32_t kind_of(const Sequence& sequence, std::size_t i) {
  return sequence.kinds.empty() ? 0 : sequence.kinds[i];
}

// Searches all segments by dynamic programming. A segment is normalised: its first element is at 0.
// Only the whole sequence, and its prefixes below vecs, may have a shift.
class ExactSearch {
 public:
  ExactSearch(const Sequence& sequence, std::span<const Subtree> kinds, const CostModel& costs)
      : d_(sequence.displacements),
        sequence_(sequence),
        kinds_(kinds),
        costs_(costs),
        n_(d_.size()),
        segments_((n_ + 1) * (n_ + 1)),
        prefixes_(n_ + 1) {
    compare_segments();
    for (std::size_t length = 1; length <= n_; ++length) {
      for (std::size_t i = 0; i + length <= n_; ++i) finish(i, length);
      finish_prefix(length);
    }
  }

  std::int64_t comparisons() const { return static_cast<std::int64_t>(n_ * (n_ - 1) / 2); }

  Subtree normalised() { return {build(0, n_), segment(0, n_).best.cost}; }

  Subtree as_it_stands() {
    if (d_[0] == 0) return normalised();
    return {build_prefix(n_), prefixes_[n_].cost};
  }

 private:
  enum class Root : std::uint8_t { leaf, vec, idx, idxbuc, strc };
  struct Choice {
    std::int64_t cost = kNoCost;
    Root root = Root::leaf;
    std::size_t child = 0;    // length of the repeated prefix, or of the first member of a strc
    std::int64_t stride = 0;  // stride of an idxbuc
    bool child_shift = false;
  };
  struct Segment {
    Choice best;
    std::int64_t members = kNoCost;  // least cost of a strc's members from here on, at least one
    std::size_t first_member = 0;
    std::size_t equal = 0;  // elements that segments from i and k have in common
  };
  // Returns a segment by first element and length; equal() by the first elements of two segments.
  Segment& segment(std::size_t i, std::size_t length) { return segments_[i * (n_ + 1) + length]; }
  std::size_t& equal(std::size_t i, std::size_t k) { return segments_[i * (n_ + 1) + k].equal; }

  static void offer(Choice& best, const Choice& choice) {
    if (choice.cost < best.cost) best = choice;
  }

  // Counts the elements from i and k on, i < k, that are shifted copies of each other.
  void compare_segments() {
    for (auto i = n_; i-- > 0;)
      for (auto k = n_; k-- > i + 1;) {
        if (kind_of(sequence_, i) != kind_of(sequence_, k)) {
          equal(i, k) = 0;
        } else {
          const bool goes_on = k + 1 < n_ && d_[i + 1] - d_[i] == d_[k + 1] - d_[k];
          equal(i, k) = goes_on ? 1 + equal(i + 1, k + 1) : 1;
        }
      }
  }

  // Finds the best tree of a segment. All shorter segments are done.
  void finish(std::size_t i, std::size_t length) {
    auto& [best, members, first_member, unused] = segment(i, length);
    if (length == 1)
      offer(best, {kinds_[static_cast<std::size_t>(kind_of(sequence_, i))].cost, Root::leaf});
    const auto member_cost = 2 * costs_.lookup;
    for (std::size_t k = 1; k < length; ++k) {
      const auto cost = segment(i, k).best.cost + member_cost + segment(i + k, length - k).members;
      if (cost < members) members = cost, first_member = k;
    }
    offer(best, {costs_.strc + members, Root::strc, first_member});
    if (const auto alone = best.cost + member_cost; alone < members)
      members = alone, first_member = length;
    extend(i, length);
  }

  // Offers the segment as the child of a vec, idx or idxbuc to all segments that repeat it.
  void extend(std::size_t i, std::size_t p) {
    const auto child = segment(i, p).best.cost;
    detail::BucketCount count(&d_[i], static_cast<std::int64_t>(p), costs_);
    for (auto at = i + p; at + p <= n_ && equal(i, at) >= p; at += p) {
      count.add();
      const auto buckets = count.buckets();
      const Choice idx{costs_.idx + count.children() * costs_.lookup + child, Root::idx, p},
          idxbuc{costs_.idxbuc + 2 * buckets * costs_.lookup + child, Root::idxbuc, p,
                 count.stride()};
      auto& best = segment(i, at + p - i).best;
      if (buckets == 1) offer(best, {costs_.vec + child, Root::vec, p});
      offer(best, idx);
      offer(best, idxbuc);
      if (i > 0) continue;
      auto& shifted = prefixes_[at + p];
      offer(shifted, idx);
      offer(shifted, idxbuc);
    }
  }

  // Finds the best shifted tree of a prefix. The normalised tree of the prefix is done.
  void finish_prefix(std::size_t length) {
    auto& shifted = prefixes_[length];
    const auto& whole = segment(0, length);
    offer(shifted, {costs_.idx + costs_.lookup + whole.best.cost, Root::idx, length});
    offer(shifted, {costs_.idxbuc + 2 * costs_.lookup + whole.best.cost, Root::idxbuc, length});
    offer(shifted, {costs_.strc + whole.members, Root::strc, whole.first_member});
    const auto stride = [&](std::size_t at) { return d_[at] - d_[at - length]; };
    for (auto at = length;
         at + length <= n_ && equal(0, at) >= length && stride(at) == stride(length); at += length)
      offer(prefixes_[at + length], {costs_.vec + shifted.cost, Root::vec, length, 0, true});
  }

  // Returns the starts of the copies of the first p elements, counted from `base`.
  std::vector<std::int64_t> starts(std::size_t i, std::size_t length, std::size_t p,
                                   std::int64_t base) const {
    std::vector<std::int64_t> out;
    for (auto at = i; at < i + length; at += p) out.push_back(d_[at] - base);
    return out;
  }

  TreeNodePtr build(std::size_t i, std::size_t length) {
    // Takes the earliest segment that looks the same, so that equal subtrees are shared.
    for (std::size_t k = 0; k < i; ++k)
      if (equal(k, i) >= length) return build(k, length);
    auto& built = built_[{i, length}];
    if (!built) built = build(i, length, segment(i, length).best, d_[i]);
    return built;
  }
  TreeNodePtr build_prefix(std::size_t length) { return build(0, length, prefixes_[length], 0); }

  // Builds the node of a choice. Displacements are counted from `base`.
  TreeNodePtr build(std::size_t i, std::size_t length, const Choice& choice, std::int64_t base) {
    const auto p = choice.child;
    switch (choice.root) {
      case Root::leaf:
        return kinds_[static_cast<std::size_t>(kind_of(sequence_, i))].root;
      case Root::vec:
        return tree_node(Vec{static_cast<std::int64_t>(length / p), d_[i + p] - d_[i],
                             choice.child_shift ? build_prefix(p) : build(i, p)});
      case Root::idx:
        return detail::make_idx(starts(i, length, p, base), build(i, p));
      case Root::idxbuc:
        return detail::make_idxbuc(starts(i, length, p, base), choice.stride, build(i, p));
      case Root::strc: {
        Strc out;
        for (auto at = i, member = p;; member = segment(at, i + length - at).first_member) {
          out.displacements.push_back(d_[at] - base);
          out.children.push_back(build(at, member));
          at += member;
          if (at == i + length) break;
        }
        return tree_node(std::move(out));
      }
    }
    return nullptr;
  }

  std::span<const std::int64_t> d_;
  const Sequence& sequence_;
  std::span<const Subtree> kinds_;
  const CostModel& costs_;
  std::size_t n_;
  std::vector<Segment> segments_;
  std::vector<Choice> prefixes_;  // choices of shifted prefixes, by length
  std::map<std::pair<std::size_t, std::size_t>, TreeNodePtr> built_;
};

class Heuristic {
 public:
  explicit Heuristic(const TreeOptions& options) : options_(options) {}

  Reconstruction run(const Sequence& sequence, std::span<const Subtree> kinds) {
    work_ += kWorkPerElement * sequence.size();
    const auto alternative = [&](std::int64_t length, std::int64_t below, bool is_vector) {
      return is_vector ? std::nullopt : improve(sequence.part(0, length), kinds, below);
    };
    return detail::reconstruct_path(sequence, kinds, {.costs = options_.costs, .idxbuc = true},
                                    alternative);
  }

 private:
  // Returns a tree of a normalised prefix that may cost less than `below`.
  std::optional<Subtree> improve(const Sequence& prefix, std::span<const Subtree> kinds,
                                 std::int64_t below) {
    const auto cheapest_leaf =
        std::min_element(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) {
          return a.cost < b.cost;
        })->cost;
    if (prefix.size() == 1 ||
        below <= options_.costs.strc + 4 * options_.costs.lookup + 2 * cheapest_leaf)
      return std::nullopt;
    if (is_affordable(prefix)) return ExactSearch(prefix, kinds, options_.costs).normalised();
    auto best = members(prefix, kinds);
    const auto next = next_occurrences(prefix);
    // Short runs pay if most of the sequence consists of them. Else only long runs do.
    for (const std::int64_t least : {3, 32}) {
      const auto folded = fold(prefix, kinds, next, least);
      const auto left = std::ssize(folded.kinds);
      if (left == 0 || left == prefix.size()) continue;
      Subtree other{nullptr, kNoCost};
      if (2 * left <= prefix.size()) {
        auto found = run(folded.view(), folded.trees);
        other = {std::move(found.root), found.cost};
      } else {
        other = members(folded.view(), folded.trees);
      }
      if (other.cost < best.cost) best = std::move(other);
    }
    if (best.root == nullptr) return std::nullopt;
    return best;
  }

  // Folds what repeats within the sequence into one element each, if it has at least `least`
  // elements. Runs of one kind and distance come first, else patterns that come again at once,
  // strided or not. Returns no elements if all of the sequence is one pattern, and no trees if
  // nothing repeats. `next` is next_occurrences(sequence).
  Elements fold(const Sequence& sequence, std::span<const Subtree> kinds,
                const std::vector<std::size_t>& next, std::int64_t least) {
    const auto& d = sequence.displacements;
    const auto n = d.size();
    auto left = 16 * static_cast<std::int64_t>(n);  // comparisons to spend on patterns
    Elements out{{}, {}, {}};
    std::map<std::vector<std::int64_t>, std::int32_t> known;
    const auto add = [&](std::size_t i, std::vector<std::int64_t> key, auto&& make) {
      if (out.trees.empty()) out.trees.assign(kinds.begin(), kinds.end());
      const auto [entry, is_new] =
          known.try_emplace(std::move(key), static_cast<std::int32_t>(out.trees.size()));
      if (is_new) out.trees.push_back(make());
      out.add(d[i] - d[0], entry->second);
    };
    for (std::size_t i = 0; i < n;) {
      const auto kind = kind_of(sequence, i);
      auto end = i + 1;
      while (end < n && kind_of(sequence, end) == kind &&
             (end == i + 1 || d[end] - d[end - 1] == d[i + 1] - d[i]))
        ++end;
      if (static_cast<std::int64_t>(end - i) >= least) {
        const auto count = static_cast<std::int64_t>(end - i), stride = d[i + 1] - d[i];
        add(i, {kind, count, stride}, [&]() -> Subtree {
          const auto& body = kinds[static_cast<std::size_t>(kind)];
          return {tree_node(Vec{count, stride, body.root}), options_.costs.vec + body.cost};
        });
        i = end;
      } else if (const auto [period, copies] = pattern_at(sequence, next, i, least, left);
                 copies > 0) {
        if (period * copies == n) return {};  // a repeated prefix, which a path handles
        const auto part =
            sequence.part(static_cast<std::int64_t>(i), static_cast<std::int64_t>(period * copies));
        std::vector<std::int64_t> key = {-1, static_cast<std::int64_t>(period)};
        for (std::size_t k = 0; k < period * copies; ++k) {
          key.push_back(part.displacements[k] - part.displacements[0]);
          if (k < period) key.push_back(kind_of(part, k));
        }
        add(i, std::move(key), [&] { return normalised(part, kinds); });
        i += period * copies;
      } else {
        out.add(d[i] - d[0], kind);
        ++i;
      }
    }
    return out;
  }

  // Returns for each element the next one that begins the same three elements; n if there is none.
  static std::vector<std::size_t> next_occurrences(const Sequence& sequence) {
    constexpr std::size_t kElements = 3;
    const auto& d = sequence.displacements;
    const auto n = d.size();
    std::vector<std::size_t> next(n, n);
    std::vector<std::pair<std::uint64_t, std::size_t>> begins;  // hashes of the elements from i on
    begins.reserve(n);
    for (std::size_t i = 0; i + kElements <= n; ++i) {
      std::uint64_t hash = 0;
      for (std::size_t k = 0; k < kElements; ++k)
        for (const auto value : {d[i + k] - d[i], std::int64_t{kind_of(sequence, i + k)}})
          hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15U;
      begins.emplace_back(hash, i);
    }
    std::sort(begins.begin(), begins.end());  // a hash table misses the cache at each element
    for (std::size_t k = 1; k < begins.size(); ++k)
      if (begins[k].first == begins[k - 1].first) next[begins[k - 1].second] = begins[k].second;
    return next;
  }

  // Finds a pattern of at least two elements that begins at i, with at least two copies, one behind
  // the other. Returns its length and its copies; 0 if there is no pattern that pays.
  std::pair<std::size_t, std::size_t> pattern_at(const Sequence& sequence,
                                                 const std::vector<std::size_t>& next,
                                                 std::size_t i, std::int64_t least,
                                                 std::int64_t& left) const {
    constexpr int kTries = 4;
    const auto& d = sequence.displacements;
    const auto n = d.size();
    auto j = next[i];
    for (int tries = 0; tries < kTries && j < n && left > 0; ++tries, j = next[j]) {
      const auto period = j - i;
      auto end = j;  // end of the copies
      while (
          end < n && kind_of(sequence, end) == kind_of(sequence, end - period) &&
          ((end - i) % period == 0 || d[end] - d[end - 1] == d[end - period] - d[end - period - 1]))
        ++end;
      left -= static_cast<std::int64_t>(end - j);
      const auto copies = (end - i) / period;
      // Compares with one list of all elements. The pattern is at worst a list itself, and so are
      // its copies.
      const auto lists = static_cast<std::int64_t>(period + copies) * options_.costs.lookup;
      const auto all = static_cast<std::int64_t>(period * copies) * options_.costs.lookup;
      if (copies >= 2 && static_cast<std::int64_t>(period * copies) >= least &&
          lists + 2 * options_.costs.idx < all)
        return {period, copies};
    }
    return {0, 0};
  }

  // Returns the best tree that is found for a sequence, normalised.
  Subtree normalised(const Sequence& sequence, std::span<const Subtree> kinds) {
    if (is_affordable(sequence)) return ExactSearch(sequence, kinds, options_.costs).normalised();
    std::vector<std::int64_t> displacements(sequence.displacements.begin(),
                                            sequence.displacements.end());
    for (auto& displacement : displacements) displacement -= sequence.displacements[0];
    auto found = run({displacements, sequence.kinds}, kinds);
    return {std::move(found.root), found.cost};
  }

  // Returns a strc with a path for every stretch of elements of one kind.
  Subtree members(const Sequence& sequence, std::span<const Subtree> kinds) const {
    const auto& d = sequence.displacements;
    const auto n = d.size();
    if (sequence.kinds.empty()) return {nullptr, kNoCost};  // one stretch: its path is known
    Strc out;
    auto cost = options_.costs.strc;
    for (std::size_t i = 0, end; i < n; i = end) {
      const auto kind = kind_of(sequence, i);
      for (end = i + 1; end < n && kind_of(sequence, end) == kind;) ++end;
      std::vector<std::int64_t> stretch;
      for (auto k = i; k < end; ++k) stretch.push_back(d[k] - d[i]);
      const auto path =
          detail::reconstruct_path({stretch}, kinds.subspan(static_cast<std::size_t>(kind), 1),
                                   {.costs = options_.costs, .idxbuc = true}, {});
      out.displacements.push_back(d[i] - d[0]);
      out.children.push_back(path.root);
      cost += 2 * options_.costs.lookup + path.cost;
    }
    return {tree_node(std::move(out)), cost};
  }

  // Tells if a sequence is short enough for an exact search, and if enough work is left for it. If
  // so, takes the search's work off work_.
  bool is_affordable(const Sequence& sequence) {
    const auto n = sequence.size();
    if (n > options_.exact || n * n * n > work_) return false;
    work_ -= n * n * n;
    return true;
  }

  static constexpr std::int64_t kWorkPerElement = 256;
  const TreeOptions& options_;
  std::int64_t work_ = 1 << 22;  // cubes of lengths still allowed; > 0 also for short sequences
};

}  // namespace

Reconstruction detail::reconstruct_tree(const Sequence& sequence, std::span<const Subtree> kinds,
                                        const TreeOptions& options) {
  if (sequence.size() <= options.exact) {
    ExactSearch search(sequence, kinds, options.costs);
    auto [root, cost] = search.as_it_stands();
    return {std::move(root), cost, search.comparisons(), true};
  }
  auto found = Heuristic(options).run(sequence, kinds);
  found.optimal = false;
  return found;
}

Reconstruction reconstruct_tree(const Sequence& sequence, std::span<const Leaf> leaves,
                                const TreeOptions& options) {
  std::vector<Subtree> kinds;
  for (const auto& leaf : leaves) kinds.push_back({tree_node(leaf), options.costs.leaf});
  return detail::reconstruct_tree(sequence, kinds, options);
}

}  // namespace halocline::dtype
