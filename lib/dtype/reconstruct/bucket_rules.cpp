// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/reconstruct/bucket_rules.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace halocline::dtype::detail {

namespace {

using Starts = std::span<const std::int64_t>;

// Holds the steps from each start to the next, with greatest common divisors and signs of ranges of
// steps.
class Steps {
 public:
  explicit Steps(Starts starts)
      : starts_(starts),
        n_(starts.size() - 1),
        before_(n_ + 1),
        behind_(n_ + 1),
        divisors_(2 * n_),
        ups_(n_ + 1),
        downs_(n_ + 1) {
    for (std::size_t i = 0; i < n_; ++i) {
      divisors_[n_ + i] = starts[i + 1] - starts[i];
      before_[i + 1] = std::gcd(before_[i], (*this)[i]);
      ups_[i + 1] = ups_[i] + ((*this)[i] > 0 ? 1 : 0);
      downs_[i + 1] = downs_[i] + ((*this)[i] < 0 ? 1 : 0);
    }
    for (auto i = n_; i-- > 0;) behind_[i] = std::gcd(behind_[i + 1], (*this)[i]);
    for (auto i = n_; i-- > 1;) divisors_[i] = std::gcd(divisors_[2 * i], divisors_[2 * i + 1]);
  }

  std::size_t size() const { return n_; }
  std::int64_t operator[](std::size_t i) const { return divisors_[n_ + i]; }
  // Returns the distance from start i to start k.
  std::int64_t distance(std::size_t i, std::size_t k) const { return starts_[k] - starts_[i]; }

  // Returns the greatest common divisor of the steps [first, last). O(log n); O(1) for ranges at
  // either end.
  std::int64_t divisor(std::size_t first, std::size_t last) const {
    if (first == 0) return before_[last];
    if (last == n_) return behind_[first];
    std::int64_t out = 0;
    for (first += n_, last += n_; first < last; first /= 2, last /= 2) {
      if (first % 2 == 1) out = std::gcd(out, divisors_[first++]);
      if (last % 2 == 1) out = std::gcd(out, divisors_[--last]);
    }
    return out;
  }
  bool all_up(std::size_t first, std::size_t last) const {
    return ups_[last] - ups_[first] == last - first;
  }
  bool all_down(std::size_t first, std::size_t last) const {
    return downs_[last] - downs_[first] == last - first;
  }

 private:
  Starts starts_;
  std::size_t n_;
  std::vector<std::int64_t> before_, behind_;
  std::vector<std::int64_t> divisors_;  // a binary tree; its leaves are the steps
  std::vector<std::size_t> ups_, downs_;
};

// Describes the places of buckets whose elements are at one distance.
struct Buckets {
  std::int64_t divisor = 0;
  bool up = true, down = true;
  std::size_t last = 0;  // the start of the last bucket

  void add(std::int64_t step) {
    divisor = std::gcd(divisor, step);
    up = up && step > 0;
    down = down && step < 0;
  }
};

// Returns the places of buckets whose inner steps are the steps at `places`. `first` is the
// distance of the first bucket from the base.
Buckets buckets_at(std::int64_t first, const Steps& steps, std::span<const std::size_t> places) {
  Buckets out;
  if (first != 0) out.add(first);
  std::size_t done = 0;
  const auto add_plain = [&](std::size_t end) {
    out.divisor = std::gcd(out.divisor, steps.divisor(done, end));
    out.up = out.up && steps.all_up(done, end);
    out.down = out.down && steps.all_down(done, end);
  };
  for (std::size_t i = 0; i < places.size();) {
    const auto begin = places[i];
    auto end = begin;
    for (; i < places.size() && places[i] == end; ++i) ++end;
    add_plain(begin);
    if (end == steps.size()) {
      out.last = begin;
      return out;
    }
    out.add(steps.distance(begin, end + 1));
    done = end + 1;
  }
  add_plain(steps.size());
  out.last = steps.size();
  return out;
}

// Tells if a rule stands for these starts. Uses no products, which might overflow for other starts.
bool stands_for(const FoundRule& found, Starts starts, std::int64_t base) {
  const auto& rule = found.rule;
  auto block = base;
  std::size_t at = 0;
  for (std::int64_t i = 0; i < rule.count; ++i) {
    const auto length = rule.length(i);
    if (i > 0 && length > 0) {
      if (starts[at] - block != rule.distance) return false;
      block = starts[at];
    }
    for (std::int64_t k = 0; k < length; ++k, ++at)
      if (k == 0 ? starts[at] != block : starts[at] - starts[at - 1] != found.stride) return false;
  }
  return true;
}

// Returns the number of blocks that hold n elements, if their lengths are first, first + change,
// ...; 0 if no number of blocks does.
std::int64_t blocks_of(std::int64_t n, std::int64_t first, std::int64_t change) {
  std::int64_t count = 0;
  for (auto length = first; n > 0 && length > 0; length += change, ++count) n -= length;
  return n == 0 ? count : 0;
}

// Finds triangular types without empty blocks.
class Triangle {
 public:
  explicit Triangle(Starts starts) : starts_(starts), n_(std::ssize(starts)) {}

  std::optional<FoundRule> find() const {
    if (n_ < 3) return std::nullopt;  // two blocks have at least one and two elements
    // The first block has several elements, or one.
    if (auto found = of_stride(at(1), false)) return found;
    return of_stride(at(2) - at(1), true);
  }

 private:
  std::int64_t at(std::int64_t i) const {
    return starts_[static_cast<std::size_t>(i)] - starts_[0];
  }

  std::optional<FoundRule> rule(std::int64_t first, std::int64_t second, std::int64_t distance,
                                std::int64_t stride) const {
    const auto count = first == second ? 0 : blocks_of(n_, first, second - first);
    FoundRule out{{count, nullptr, first, second - first, 0, distance}, stride};
    if (count < 2 || !stands_for(out, starts_, starts_[0])) return std::nullopt;
    return out;
  }

  // Returns the end of the run that goes on at this stride from element i.
  std::int64_t run_end(std::int64_t i, std::int64_t stride) const {
    ++i;
    while (i < n_ && at(i) - at(i - 1) == stride) ++i;
    return i;
  }

  std::optional<FoundRule> of_stride(std::int64_t stride, bool of_one) const {
    const auto end = of_one ? 1 : run_end(0, stride);
    if (end == n_) return rule(1, n_ - 1, stride, stride);  // one of many ways to divide a vector
    if (auto found = of_first(end, stride)) return found;
    // The second block may go on at the end of the first. Then the third does not, since lengths
    // change.
    if (of_one || stride == 0) return std::nullopt;
    const auto first = at(end) / stride / 2;
    return 0 < first && first < end ? of_first(first, stride) : std::nullopt;
  }

  std::optional<FoundRule> of_first(std::int64_t first, std::int64_t stride) const {
    const auto distance = at(first);
    const auto end = run_end(first, stride);
    if (auto found = rule(first, end - first, distance, stride)) return found;
    // The third block may go on at the end of the second.
    if (stride == 0 || distance % stride != 0) return std::nullopt;
    const auto second = distance / stride;
    return 0 < second && second < end - first ? rule(first, second, distance, stride)
                                              : std::nullopt;
  }

  Starts starts_;
  std::int64_t n_;
};

// Finds a triangular type with an empty block at the base: block i has i times the elements of
// block 1.
std::optional<FoundRule> find_strict_triangle(Starts starts, std::int64_t base) {
  const auto n = std::ssize(starts);
  const auto distance = starts[0] - base;
  const auto step_to = [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    return starts[at] - starts[at - 1];
  };
  for (std::int64_t blocks = 1, sum = 1; sum <= n; ++blocks, sum += blocks) {
    if (n % sum != 0) continue;
    const auto first = n / sum;  // elements of block 1
    if (blocks > 1 && starts[static_cast<std::size_t>(first)] - starts[0] != distance) continue;
    // The stride inside the last block, if that has several elements.
    const auto stride = blocks * first > 1 ? step_to(n - 1) : 0;
    FoundRule out{{blocks + 1, nullptr, 0, first, 0, distance}, stride};
    if (stands_for(out, starts, base)) return out;
  }
  return std::nullopt;
}

}  // namespace

std::optional<BucketFit> find_bucket(Starts starts, std::int64_t base, std::int64_t most) {
  const Steps steps(starts);
  const auto first = starts[0] - base;
  std::vector<std::size_t> by_stride(steps.size());
  std::iota(by_stride.begin(), by_stride.end(), std::size_t{0});
  std::sort(by_stride.begin(), by_stride.end(), [&](std::size_t a, std::size_t b) {
    return steps[a] != steps[b] ? steps[a] < steps[b] : a < b;
  });
  std::optional<BucketFit> best;
  for (std::size_t i = 0, end; i < by_stride.size(); i = end) {
    const auto stride = steps[by_stride[i]];
    for (end = i + 1; end < by_stride.size() && steps[by_stride[end]] == stride;) ++end;
    const auto nonempty = static_cast<std::int64_t>(starts.size() - (end - i));
    if (nonempty > most) continue;
    const auto buckets = buckets_at(first, steps, std::span(by_stride).subspan(i, end - i));
    if (buckets.divisor != 0 && !buckets.up && !buckets.down) continue;
    const auto size = buckets.up ? buckets.divisor : -buckets.divisor;  // 0: all at one place
    const auto count = size == 0 ? nonempty : (starts[buckets.last] - base) / size + 1;
    if (count > most) continue;
    best = {count, size, stride};
    most = count - 1;
  }
  return best;
}

BucketRule bucket_rule(Starts starts, std::int64_t base, const BucketFit& fit) {
  std::vector<std::int64_t> ends;
  ends.reserve(static_cast<std::size_t>(fit.count));
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (i > 0 && starts[i] - starts[i - 1] == fit.stride) continue;
    // Another bucket begins: the buckets before it end here.
    const auto bucket =
        fit.size == 0 ? std::ssize(ends) + (i > 0 ? 1 : 0) : (starts[i] - base) / fit.size;
    ends.resize(static_cast<std::size_t>(bucket), static_cast<std::int64_t>(i));
  }
  ends.push_back(std::ssize(starts));
  return {fit.count, std::make_shared<const std::vector<std::int64_t>>(std::move(ends)), 0, 0, 0,
          fit.size};
}

std::optional<FoundRule> find_triangular(Starts starts, std::int64_t base) {
  return starts[0] == base ? Triangle(starts).find() : find_strict_triangle(starts, base);
}

}  // namespace halocline::dtype::detail
