// SPDX-License-Identifier: BSD-3-Clause
// Counts the fewest buckets that the children of an idxbuc need: [KT15] Algorithm 7 with the roles
// of p and q as in errata A.5.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "dtype/reconstruct/cost_model.hpp"

namespace halocline::dtype::detail {

/// Counts the distances of children that follow each other, one child after the other. Children at
/// the most frequent distance stay in the bucket of the child before.
///
/// If costs.idxbuc >= costs.idx, buckets pay only if more than half of the distances are equal. A
/// vote (Boyer and Moore) finds that distance without a table. Each child then takes O(1) while the
/// winner stays the same. Without a vote, each child takes O(1) expected.
class BucketCount {
 public:
  /// Begins with child 0; child k starts at first[k * step].
  BucketCount(const std::int64_t* first, std::int64_t step, const CostModel& costs)
      : first_(first), step_(step), vote_(costs.idxbuc >= costs.idx) {}

  /// Adds the next child, number `children()`.
  void add() {
    const auto distance = this->distance(children_++);
    if (vote_) {
      if (votes_ == 0 && distance != stride_) stride_ = distance, counted_ = false;
      votes_ += distance == stride_ ? 1 : -1;
      if (counted_ && distance == stride_) ++most_;
    } else if (const auto count = ++occurrences_[distance]; count > most_) {
      most_ = count;
      stride_ = distance;
    }
  }

  std::int64_t children() const { return children_; }

  /// Returns the fewest buckets for the children so far; `children()` if buckets are no gain over
  /// an idx.
  std::int64_t buckets() {
    if (vote_ && votes_ == 0) return children_;
    if (vote_ && !counted_) {
      most_ = 0;
      for (std::int64_t k = 1; k < children_; ++k) most_ += distance(k) == stride_ ? 1 : 0;
      counted_ = true;
    }
    return children_ - most_;
  }

  /// Returns the distance of children inside buckets.
  std::int64_t stride() const { return stride_; }

 private:
  // Returns the distance of child k from the child before.
  std::int64_t distance(std::int64_t k) const {
    return first_[k * step_] - first_[(k - 1) * step_];
  }

  const std::int64_t* first_;
  std::int64_t step_;
  bool vote_;
  std::int64_t children_ = 1, stride_ = 0, votes_ = 0;
  std::int64_t most_ = 0;  // children at stride_; with a vote only valid if counted_
  bool counted_ = false;
  std::unordered_map<std::int64_t, std::int64_t> occurrences_;
};

}  // namespace halocline::dtype::detail
