// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/reconstruct/repeated_prefixes.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <unordered_set>

namespace halocline::dtype {

namespace {

std::vector<std::int64_t> distinct_primes(std::int64_t n) {
  std::vector<std::int64_t> primes;
  for (std::int64_t f = 2; f * f <= n; ++f) {
    if (n % f != 0) continue;
    primes.push_back(f);
    while (n % f == 0) n /= f;
  }
  if (n > 1) primes.push_back(n);
  return primes;
}

class Search {
 public:
  Search(const Sequence& sequence, std::int64_t budget)
      : d_(sequence.displacements), kinds_(sequence.kinds), n_(sequence.size()), budget_(budget) {}

  RepeatedPrefixes run() {
    found_.push_back({n_, n_});
    climb();
    descend();
    std::sort(found_.begin(), found_.end(),
              [](const auto& a, const auto& b) { return a.length < b.length; });
    return {std::move(found_), comparisons_, comparisons_ <= budget_};
  }

 private:
  bool is_known(std::int64_t length) const {
    return std::any_of(found_.begin(), found_.end(),
                       [=](const auto& prefix) { return prefix.length == length; });
  }
  bool may_go_on() const { return comparisons_ <= budget_; }

  // Searches from the shortest prefix upwards. In a regular sequence, the only candidate for the
  // next prefix is the length up to which the last one is strided. Takes a pass for every level of
  // a nest of vectors.
  void climb() {
    for (std::int64_t q = 1; q < n_ && may_go_on();) {
      const auto length = q == 1 && kinds_.empty() ? 1 : longest(n_, q);
      if (length == 0 || is_known(length)) return;
      found_.push_back({length, strided_to(length)});
      q = std::gcd(n_, found_.back().strided);
    }
  }

  // Searches from every prefix that was found downwards, by each of its primes (errata A.2). Begins
  // with the shortest one, whose search costs least. A divisor that is not repeated has one longest
  // divisor that is.
  void descend() {
    const auto primes = distinct_primes(n_);
    std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> open;
    for (const auto& prefix : found_) open.push(prefix.length);
    std::unordered_set<std::int64_t> searched;
    while (!open.empty() && may_go_on()) {
      const auto r = open.top();
      open.pop();
      for (const auto prime : primes) {
        if (r % prime != 0) continue;
        const auto target = r / prime;
        if (is_known(target) || !searched.insert(target).second) continue;
        const auto length = is_strided_below(target, r) ? target : longest(r, target);
        if (length == 0 || is_known(length)) continue;
        found_.push_back({length, strided_to(length)});
        open.push(length);
      }
    }
  }

  // Tells if P_target is copies of a prefix that is strided in P_r. Then P_target is repeated, too.
  bool is_strided_below(std::int64_t target, std::int64_t r) const {
    return std::any_of(found_.begin(), found_.end(), [=](const auto& prefix) {
      return prefix.strided >= r && target % prefix.length == 0;
    });
  }

  // Returns the distance between the copy of P_q at `at` and the copy behind it.
  std::int64_t step(std::int64_t at, std::int64_t q) const {
    return d_[static_cast<std::size_t>(at + q)] - d_[static_cast<std::size_t>(at)];
  }

  // Returns the length up to which P_q is strided: at least that of each of its divisors.
  std::int64_t strided_to(std::int64_t q) {
    auto end = q;
    for (const auto& prefix : found_)
      if (q % prefix.length == 0) end = std::max(end, prefix.strided / q * q);
    while (end < n_ && may_go_on()) {
      ++comparisons_;
      if (step(end - q, q) != step(0, q)) break;
      end += q;
    }
    return end;
  }

  // Returns the number of elements from `at` on that are a shifted copy of the first ones, at most
  // `length`. Returns 0 if a kind differs there or at the first element that is no copy.
  std::int64_t equal_elements(std::int64_t at, std::int64_t length) {
    const auto* const head = d_.data();
    const auto* const copy = head + at;
    const auto* const end = head + length;
    // Eight at a time: the compiler vectorizes that.
    constexpr std::int64_t kAtOnce = 8;
    const auto shift = *copy - *head;
    const auto* h = head;
    const auto* c = copy;
    for (; end - h >= kAtOnce; h += kAtOnce, c += kAtOnce) {
      std::int64_t differences = 0;
      for (std::int64_t i = 0; i < kAtOnce; ++i) differences |= (c[i] - h[i]) ^ shift;
      if (differences != 0) break;
    }
    while (h != end && *c - *h == shift) ++h, ++c;
    const auto equal = h - head;
    const auto compared = std::min(equal + 1, length);  // the first element needs no comparison
    comparisons_ += kinds_.empty() ? compared - 1 : compared;
    if (!kinds_.empty()) {
      const auto* const k = kinds_.data();
      if (!std::equal(k, k + compared, k + at)) return 0;
    }
    return equal;
  }

  // Returns the longest divisor of q whose prefix is repeated in P_m, or one that is known to be; 0
  // if there is none. Every m is a multiple of q. [KT15] Algorithm 4, corrected as in errata A.1.
  //
  // The scan goes forwards and compares with the head of the sequence. After a mismatch at some
  // offset, it goes on with the greatest divisor that could still be repeated, since copies begin
  // at multiples of it. The head before the begin of the scan is searched next, in the same way.
  std::int64_t longest(std::int64_t m, std::int64_t q) {
    for (;;) {
      const auto head = q;
      for (auto at = q; at < m;) {
        if (!may_go_on()) return 0;
        const auto equal = equal_elements(at, q);
        if (equal == 0) return 0;
        at += equal;
        if (equal == q) continue;
        q = std::gcd(q, equal);
        if (is_known(q)) return q;
      }
      if (q == head) return q;
      m = head;
    }
  }

  std::span<const std::int64_t> d_;
  std::span<const std::int32_t> kinds_;
  std::int64_t n_, budget_;
  std::int64_t comparisons_ = 0;
  std::vector<RepeatedPrefix> found_;
};

}  // namespace

Sequence Sequence::part(std::int64_t first, std::int64_t length) const {
  const auto at = static_cast<std::size_t>(first), n = static_cast<std::size_t>(length);
  return {displacements.subspan(at, n), kinds.empty() ? kinds : kinds.subspan(at, n)};
}

RepeatedPrefixes repeated_prefixes(const Sequence& sequence, std::int64_t budget) {
  return Search(sequence, budget).run();
}

}  // namespace halocline::dtype
