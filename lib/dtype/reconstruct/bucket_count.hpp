// SPDX-License-Identifier: BSD-3-Clause
// How few buckets the children of an idxbuc need: [KT15] Algorithm 7 with the roles of p and q as
// in errata A.5.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "dtype/reconstruct/cost_model.hpp"

namespace halocline::dtype::detail {

/// Counts the distances of children that follow each other, for more and more of them: those of the
/// most frequent distance stay in the bucket of the child before.
///
/// Where an idxbuc costs no less than an idx but for its list, buckets pay only if more than half
/// of the distances are equal, which a vote finds without a table (Boyer and Moore): O(1) for each
/// child as long as the winner stays the same. O(1) expected otherwise.
class BucketCount {
 public:
  /// Child k starts at first[k * step].
  BucketCount(const std::int64_t* first, std::int64_t step, const CostModel& costs)
      : first_(first), step_(step), vote_(costs.idxbuc >= costs.idx) {}

  /// Takes child number `children()` in.
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

  /// The fewest buckets for the children so far, or as many as there are children if that is no
  /// gain over an idx.
  std::int64_t buckets() {
    if (vote_ && votes_ == 0) return children_;
    if (vote_ && !counted_) {
      most_ = 0;
      for (std::int64_t k = 1; k < children_; ++k) most_ += distance(k) == stride_ ? 1 : 0;
      counted_ = true;
    }
    return children_ - most_;
  }

  /// The distance inside buckets.
  std::int64_t stride() const { return stride_; }

 private:
  // Of child k from the one before.
  std::int64_t distance(std::int64_t k) const {
    return first_[k * step_] - first_[(k - 1) * step_];
  }

  const std::int64_t* first_;
  std::int64_t step_;
  bool vote_;
  std::int64_t children_ = 1, stride_ = 0, votes_ = 0;
  std::int64_t most_ = 0;  // children at that distance; of a vote, if they were counted
  bool counted_ = false;
  std::unordered_map<std::int64_t, std::int64_t> occurrences_;
};

}  // namespace halocline::dtype::detail
