// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/reconstruct/bucket_rules.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

namespace halocline::dtype::detail {

namespace {

using Starts = std::span<const std::int64_t>;

// From each start to the next; with greatest common divisors and signs of ranges of them.
class Steps {
 public:
  explicit Steps(Starts starts)
      : n_(starts.size() - 1), divisors_(2 * n_), ups_(n_ + 1), downs_(n_ + 1) {
    for (std::size_t i = 0; i < n_; ++i) {
      divisors_[n_ + i] = starts[i + 1] - starts[i];
      ups_[i + 1] = ups_[i] + ((*this)[i] > 0 ? 1 : 0);
      downs_[i + 1] = downs_[i] + ((*this)[i] < 0 ? 1 : 0);
    }
    for (auto i = n_; i-- > 1;) divisors_[i] = std::gcd(divisors_[2 * i], divisors_[2 * i + 1]);
  }

  std::size_t size() const { return n_; }
  std::int64_t operator[](std::size_t i) const { return divisors_[n_ + i]; }

  // Of the steps [first, last).
  std::int64_t divisor(std::size_t first, std::size_t last) const {
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
  std::size_t n_;
  std::vector<std::int64_t> divisors_;  // a binary tree, its leaves the steps
  std::vector<std::size_t> ups_, downs_;
};

// Where buckets stand that hold what follows at one distance.
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

// Those whose elements are as far from each other as the steps at `places`.
Buckets buckets_at(const Steps& steps, const std::vector<std::size_t>& places) {
  Buckets out;
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
    out.add(static_cast<std::int64_t>(end - begin) * steps[begin] + steps[end]);
    done = end + 1;
  }
  add_plain(steps.size());
  out.last = steps.size();
  return out;
}

FoundRule bucket_rule(Starts starts, std::int64_t size, std::int64_t stride) {
  std::vector<std::int64_t> ends;
  std::int64_t end = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (i > 0 && starts[i] - starts[i - 1] != stride) {
      const auto bucket = size == 0 ? 0 : (starts[i] - starts[0]) / size;
      ends.resize(static_cast<std::size_t>(bucket), end);
    }
    ++end;
  }
  ends.push_back(end);
  const auto count = std::ssize(ends);
  return {
      {count, std::make_shared<const std::vector<std::int64_t>>(std::move(ends)), 0, 0, 0, size},
      stride};
}

bool is_triangular(Starts starts, const BucketRule& rule, std::int64_t stride) {
  std::size_t at = 0;
  for (std::int64_t i = 0; i < rule.count; ++i)
    for (std::int64_t k = 0; k < rule.length(i); ++k)
      if (starts[at++] - starts[0] != rule.displacement(i) + k * stride) return false;
  return true;
}

// So many blocks hold n elements if their lengths begin like this; 0 if none do.
std::int64_t blocks_of(std::int64_t n, std::int64_t first, std::int64_t change) {
  std::int64_t count = 0;
  for (auto length = first; n > 0 && length > 0; length += change, ++count) n -= length;
  return n == 0 ? count : 0;
}

class Triangle {
 public:
  explicit Triangle(Starts starts) : starts_(starts), n_(std::ssize(starts)) {}

  std::optional<FoundRule> find() {
    if (n_ == 1) return rule(1, 0, 0, 0);
    // The first block has two elements or one.
    if (auto found = of_stride(at(1), false)) return found;
    if (n_ == 2) return std::nullopt;
    return of_stride(at(2) - at(1), true);
  }

 private:
  std::int64_t at(std::int64_t i) const {
    return starts_[static_cast<std::size_t>(i)] - starts_[0];
  }

  std::optional<FoundRule> rule(std::int64_t first, std::int64_t change, std::int64_t distance,
                                std::int64_t stride) const {
    const auto count = blocks_of(n_, first, change);
    if (count == 0) return std::nullopt;
    BucketRule out{count, nullptr, first, change, 0, distance};
    if (!is_triangular(starts_, out, stride)) return std::nullopt;
    return FoundRule{std::move(out), stride};
  }

  // The end of the run that goes on at this stride from element i.
  std::int64_t run_end(std::int64_t i, std::int64_t stride) const {
    ++i;
    while (i < n_ && at(i) - at(i - 1) == stride) ++i;
    return i;
  }

  std::optional<FoundRule> of_stride(std::int64_t stride, bool of_one) const {
    const auto end = of_one ? 1 : run_end(0, stride);
    if (end == n_) return rule(n_, 0, 0, stride);
    if (auto found = of_first(end, stride)) return found;
    // The second block may go on where the first one ends; then not the third, unless all are of
    // one length.
    if (of_one || stride == 0) return std::nullopt;
    const auto first = at(end) / (2 * stride);
    return 0 < first && first < end ? of_first(first, stride) : std::nullopt;
  }

  std::optional<FoundRule> of_first(std::int64_t first, std::int64_t stride) const {
    const auto distance = at(first);
    const auto end = run_end(first, stride);
    const auto of_second = [&](std::int64_t second) {
      return rule(first, second - first, distance, stride);
    };
    if (auto found = of_second(end - first)) return found;
    // Likewise the third one.
    if (stride == 0 || distance % stride != 0) return std::nullopt;
    const auto second = distance / stride;
    return 0 < second && second < end - first ? of_second(second) : std::nullopt;
  }

  Starts starts_;
  std::int64_t n_;
};

}  // namespace

std::optional<FoundRule> find_bucket(Starts starts) {
  if (starts.size() == 1) return bucket_rule(starts, 0, 0);
  const Steps steps(starts);
  std::map<std::int64_t, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < steps.size(); ++i) places[steps[i]].push_back(i);
  std::int64_t fewest = 0, best_size = 0, best_stride = 0;
  for (const auto& [stride, of_stride] : places) {
    const auto buckets = buckets_at(steps, of_stride);
    if (!buckets.up && !buckets.down) continue;
    const auto size = buckets.up ? buckets.divisor : -buckets.divisor;
    const auto count = size == 0 ? 1 : (starts[buckets.last] - starts[0]) / size + 1;
    if (fewest > 0 && count >= fewest) continue;
    fewest = count, best_size = size, best_stride = stride;
  }
  if (fewest == 0) return std::nullopt;
  return bucket_rule(starts, best_size, best_stride);
}

std::optional<FoundRule> find_triangular(Starts starts) {
  return Triangle(starts).find();
}

}  // namespace halocline::dtype::detail
