// SPDX-License-Identifier: BSD-3-Clause
// Describes buckets whose places follow a rule: the bucket, stretched and triangular types of [TR14
// section 5] and [KT15 section 3.3]. Errata C.6 defines these types. One struct stands for all
// three.
//
// Best peer: none. MPI libraries store each of them as an indexed type, with two arrays. Here a
// bucket type stores one array, all stretched vectors of a call share one, and a triangular type
// has none.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace halocline::dtype {

/// Describes buckets by a rule. Bucket i holds the elements [begin(i), end(i)), counted in packed
/// order. Its displacement in bytes is:
///
///     displacement(i) = start + i * distance + length(i) * own + begin(i) * before
///
///     bucket            distance = its size
///     stretched vector  own = index * extent, before = types * extent
///     triangular        distance = its stride
struct BucketRule {
  std::int64_t count = 0;
  /// Holds end(i) of each bucket, in elements; null for a triangular type. The length(i) of a
  /// triangular type is first + i * change.
  std::shared_ptr<const std::vector<std::int64_t>> ends = nullptr;
  std::int64_t first = 0, change = 0;
  std::int64_t start = 0, distance = 0, own = 0, before = 0;

  std::int64_t begin(std::int64_t i) const {
    if (ends == nullptr) return i * first + change * (i * (i - 1) / 2);
    return i == 0 ? 0 : (*ends)[static_cast<std::size_t>(i - 1)];
  }
  std::int64_t end(std::int64_t i) const { return begin(i + 1); }
  std::int64_t length(std::int64_t i) const { return end(i) - begin(i); }
  std::int64_t displacement(std::int64_t i) const {
    return start + i * distance + length(i) * own + begin(i) * before;
  }
  std::int64_t elements() const { return begin(count); }

  /// Returns the number of buckets that hold elements. O(count); O(1) for a triangular type.
  std::int64_t nonempty() const {
    std::int64_t out = 0;
    for (std::int64_t i = 0; ends != nullptr && i < count; ++i) out += length(i) > 0 ? 1 : 0;
    if (ends != nullptr || count == 0) return out;
    if (change == 0 || count == 1) return first > 0 ? count : 0;
    return count - (length(0) == 0 ? 1 : 0) - (length(count - 1) == 0 ? 1 : 0);
  }

  const char* name() const {
    if (ends == nullptr) return "triangular";
    return own == 0 && before == 0 ? "bucket" : "stretched";
  }

  /// Returns the bucket that holds an element; `count` if the element is behind the last bucket.
  /// O(log count).
  std::int64_t bucket_of(std::int64_t element) const {
    std::int64_t least = 0, most = count;
    while (least < most) {
      const auto middle = least + (most - least) / 2;
      if (end(middle) > element)
        most = middle;
      else
        least = middle + 1;
    }
    return least;
  }

  bool operator==(const BucketRule& other) const {
    const auto numbers = [](const BucketRule& r) {
      return std::array{r.count, r.first, r.change, r.start, r.distance, r.own, r.before};
    };
    const bool equal_ends = ends == other.ends || (ends && other.ends && *ends == *other.ends);
    return equal_ends && numbers(*this) == numbers(other);
  }
};

}  // namespace halocline::dtype
