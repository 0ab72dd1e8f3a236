// SPDX-License-Identifier: BSD-3-Clause
// Finds the cheapest representation of a short displacement sequence: tries all that [KT15]'s
// definitions allow. It shares only the cost constants with the algorithms that it judges.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "dtype/reconstruct/cost_model.hpp"

namespace halocline::dtype::test {

using Displacements = std::vector<std::int64_t>;

/// Describes an element: its displacement and its kind of basic type.
struct Element {
  std::int64_t at;
  std::int32_t kind = 0;
  auto operator<=>(const Element&) const = default;
};
using ElementList = std::vector<Element>;

inline ElementList of_one_kind(const Displacements& d) {
  ElementList out;
  for (const auto at : d) out.push_back({at});
  return out;
}

inline ElementList moved(ElementList list, std::int64_t by) {
  for (auto& element : list) element.at += by;
  return list;
}

/// Tells if the list is copies of its first q elements, each copy shifted.
inline bool is_repeated(const ElementList& d, std::size_t q) {
  if (d.size() % q != 0) return false;
  for (std::size_t i = 0; i < d.size(); ++i)
    if (d[i].at - d[i / q * q].at != d[i % q].at - d[0].at || d[i].kind != d[i % q].kind)
      return false;
  return true;
}

/// Returns the start of each copy of the first q elements.
inline Displacements starts_of(const ElementList& d, std::size_t q) {
  Displacements starts;
  for (std::size_t i = 0; i < d.size(); i += q) starts.push_back(d[i].at);
  return starts;
}

/// Tells if all neighbouring displacements have the same distance.
inline bool is_strided(const Displacements& starts) {
  for (std::size_t i = 2; i < starts.size(); ++i)
    if (starts[i] - starts[i - 1] != starts[1] - starts[0]) return false;
  return true;
}

/// Returns the smallest number of buckets for these starts. All buckets have the same distance
/// inside.
inline std::int64_t fewest_buckets(const Displacements& starts) {
  std::set<std::int64_t> distances = {0};
  for (std::size_t i = 1; i < starts.size(); ++i) distances.insert(starts[i] - starts[i - 1]);
  auto fewest = std::ssize(starts);
  for (const auto distance : distances) {
    std::int64_t buckets = 1;
    for (std::size_t i = 1; i < starts.size(); ++i)
      if (starts[i] - starts[i - 1] != distance) ++buckets;
    fewest = std::min(fewest, buckets);
  }
  return fewest;
}

/// Returns 0 and all distances between any two starts, of either sign.
inline std::set<std::int64_t> all_distances(const Displacements& starts) {
  std::set<std::int64_t> out = {0};
  for (const auto a : starts)
    for (const auto b : starts) out.insert(a - b);
  return out;
}

/// Returns the smallest number of buckets of a bucket type with elements at starts[k] - base. Tries
/// all ways to cut the starts into buckets, all sizes and all distances inside. A size longer than
/// all starts together is of no use.
inline std::optional<std::int64_t> fewest_regular_buckets(const Displacements& starts,
                                                          std::int64_t base) {
  std::optional<std::int64_t> fewest;
  const auto n = starts.size();
  std::int64_t longest = 0;
  for (const auto start : starts) longest = std::max(longest, std::abs(start - base));
  Displacements buckets;
  for (const auto distance : all_distances(starts))
    for (std::uint32_t cuts = 0; cuts < 1U << (n - 1); ++cuts) {
      buckets.assign(1, starts[0] - base);
      bool fits = true;
      for (std::size_t i = 1; i < n && fits; ++i) {
        if ((cuts >> (i - 1) & 1) != 0)
          buckets.push_back(starts[i] - base);
        else
          fits = starts[i] - starts[i - 1] == distance;
      }
      if (!fits || (fewest && std::ssize(buckets) > *fewest)) continue;
      for (auto size = -longest; size <= longest; ++size) {
        // Bucket numbers have to ascend. Buckets of size 0 may have any numbers.
        std::int64_t last = -1;
        bool regular = true;
        for (std::size_t i = 0; i < buckets.size() && regular; ++i) {
          const auto at = buckets[i];
          const auto bucket = size == 0 ? last + 1 : at / size;
          regular = bucket * size == at && bucket > last;
          last = bucket;
        }
        if (regular) fewest = std::min(fewest.value_or(last + 1), last + 1);
      }
    }
  return fewest;
}

/// Tells if elements at starts[k] - base are triangular: blocks of first, first + change, ...
/// elements at equal distances. There are at least two blocks, and the change is not 0. Only the
/// first block may be empty, if it has to make a shift. Tries all of them.
inline bool is_triangular(const Displacements& starts, std::int64_t base) {
  const auto n = std::ssize(starts);
  auto distances = all_distances(starts);
  distances.insert(starts[0] - base);
  Displacements lengths, all;
  for (std::int64_t first = starts[0] == base ? 1 : 0; first <= n; ++first)
    for (auto change = -n; change <= n; ++change) {
      lengths.clear();
      std::int64_t sum = 0;
      for (auto length = first; sum < n && (length > 0 || lengths.empty()); length += change) {
        lengths.push_back(length);
        sum += length;
      }
      if (sum != n || change == 0 || lengths.size() < 2) continue;
      for (const auto distance : distances)
        for (const auto inside : distances) {
          all.clear();
          for (std::int64_t i = 0; i < std::ssize(lengths); ++i)
            for (std::int64_t k = 0; k < lengths[static_cast<std::size_t>(i)]; ++k)
              all.push_back(base + i * distance + k * inside);
          if (all == starts) return true;
        }
    }
  return false;
}

/// Says which nodes a path may have beside leaf, vec and idx.
struct Nodes {
  bool idxbuc = false, strc = false, bucket = false, triangular = false;
};

/// Computes the costs of the cheapest paths and trees.
class BruteForce {
 public:
  BruteForce(CostModel costs, Nodes nodes) : costs_(costs), nodes_(nodes) {}

  std::int64_t operator()(const ElementList& d) {
    if (const auto found = known_.find(d); found != known_.end()) return found->second;
    const auto n = d.size();
    constexpr auto kNever = std::int64_t{1} << 40;
    auto best = kNever;
    const auto offer = [&](std::int64_t cost) { best = std::min(best, cost); };
    if (n == 1 && d[0].at == 0) offer(costs_.leaf);
    for (std::size_t q = 1; q <= n; ++q) {
      if (!is_repeated(d, q)) continue;
      const ElementList head(d.begin(), d.begin() + static_cast<std::ptrdiff_t>(q));
      const auto starts = starts_of(d, q);
      const auto normal = moved(head, -d[0].at);
      // The child of an index that moves nothing would be the sequence itself.
      if (q < n || d[0].at != 0) {
        const auto child = (*this)(normal);
        offer(costs_.idx + std::ssize(starts) * costs_.lookup + child);
        if (nodes_.idxbuc)
          offer(costs_.idxbuc + 2 * fewest_buckets(starts) * costs_.lookup + child);
      }
      if (q < n && is_strided(starts)) offer(costs_.vec + (*this)(head));
      // A rule leaves the shift to its child, or makes all of the shift.
      for (const bool makes_shift : {false, true}) {
        if (q == n || (makes_shift && d[0].at == 0)) continue;
        const auto base = makes_shift ? 0 : d[0].at;
        const auto& child = makes_shift ? normal : head;
        if (nodes_.bucket)
          if (const auto buckets = regular_buckets(starts, base))
            offer(costs_.bucket + *buckets * costs_.lookup + (*this)(child));
        if (nodes_.triangular && triangular(starts, base))
          offer(costs_.triangular + (*this)(child));
      }
      if (q < n && d[0].at != 0) {  // an index may leave the shift to its child
        const auto child = (*this)(head);
        offer(costs_.idx + std::ssize(starts) * costs_.lookup + child);
        if (nodes_.idxbuc)
          offer(costs_.idxbuc + 2 * fewest_buckets(starts) * costs_.lookup + child);
      }
    }
    if (nodes_.strc) {
      if (n > 1 || d[0].at != 0) offer(costs_.strc + cheapest_children(d, 0));
    }
    return known_[d] = best;
  }

 private:
  // Searches once for all starts with the same differences from their base.
  std::optional<std::int64_t> regular_buckets(const Displacements& starts, std::int64_t base) {
    const auto [entry, is_new] = buckets_.try_emplace(from(starts, base));
    if (is_new) entry->second = fewest_regular_buckets(entry->first, 0);
    return entry->second;
  }
  bool triangular(const Displacements& starts, std::int64_t base) {
    const auto [entry, is_new] = triangular_.try_emplace(from(starts, base));
    if (is_new) entry->second = is_triangular(entry->first, 0);
    return entry->second;
  }
  static Displacements from(Displacements starts, std::int64_t base) {
    for (auto& start : starts) start -= base;
    return starts;
  }

  // Returns the cost of the cheapest way to cut d[first, n) into normalised children. Tries all
  // 2^(n - first) ways.
  std::int64_t cheapest_children(const ElementList& d, std::size_t first) {
    if (first == d.size()) return 0;
    auto best = std::int64_t{1} << 40;
    for (auto end = first + 1; end <= d.size(); ++end) {
      if (first == 0 && end == d.size() && d[0].at == 0) continue;  // d itself
      const ElementList child(d.begin() + static_cast<std::ptrdiff_t>(first),
                              d.begin() + static_cast<std::ptrdiff_t>(end));
      best = std::min(best, 2 * costs_.lookup + (*this)(moved(child, -child[0].at)) +
                                cheapest_children(d, end));
    }
    return best;
  }

  CostModel costs_;
  Nodes nodes_;
  std::map<ElementList, std::int64_t> known_;
  inline static std::map<Displacements, std::optional<std::int64_t>> buckets_;
  inline static std::map<Displacements, bool> triangular_;
};

}  // namespace halocline::dtype::test
