// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/lower.hpp"

#include <algorithm>
#include <utility>

#include "dtype/type_tree.hpp"
#include "support/narrow.hpp"

namespace halocline::dtype {

namespace {

constexpr std::int64_t kMostBlocks = std::int64_t{1} << 26, kMostTurns = 1 << 20;

void limit(const char* name, std::int64_t number, std::int64_t most, const char* what) {
  if (number > most)
    throw ConfigError(std::string(name) + " is too large for MPI (" + std::to_string(number) + " " +
                      what + ", and " + std::to_string(most) +
                      " at most): make it of smaller ones");
}

// Throws ConfigError for numbers that would overflow a sum.
template <class... Numbers>
void check_numbers(Numbers... numbers) {
  (checked_bytes(numbers, false), ...);
}

template <class Constructor>
const char* wrong_blocks(const Constructor& t) {
  const bool right = 0 <= t.blocklength && t.blocklength <= t.stride && t.stride >= 1;
  return right ? nullptr : "a stride of at least 1 and blocklength";
}

// Adds the elements in [begin, end) of blocks at start, start + stride, ..., moved by `shift`. The
// start is at most `begin`.
template <class Constructor>
void add_blocks(std::vector<StridedBlocks>& out, const Constructor& t, std::int64_t begin,
                std::int64_t end, std::int64_t shift) {
  auto block = begin - (begin - t.start) % t.stride;
  const auto add = [&](std::int64_t position, std::int64_t count, std::int64_t blocklength) {
    if (count > 0 && blocklength > 0)
      out.push_back({position + shift, count, blocklength, t.stride});
  };
  const auto add_one = [&] {
    const auto first = std::max(block, begin), last = std::min(block + t.blocklength, end);
    add(first, 1, last - first);
    block += t.stride;
  };
  if (block < begin) add_one();
  const auto whole = end - block < t.blocklength ? 0 : (end - block - t.blocklength) / t.stride + 1;
  add(block, whole, t.blocklength);
  block += whole * t.stride;
  if (block < end) add_one();
}

template <class Constructor>
TypeExprPtr lower_blocks(const Constructor& t) {
  const auto extent = type_bounds(*t.old).extent;
  Struct out;
  for (const auto& [position, count, blocklength, stride] : strided_blocks(t)) {
    out.blocklengths.push_back(1);
    out.displacements.push_back(checked_multiply(position, extent));
    out.old.push_back(
        count == 1 ? type(Contiguous{blocklength, t.old})
                   : type(Hvector{count, blocklength, checked_multiply(stride, extent), t.old}));
  }
  if (out.old.empty()) return type(Contiguous{0, t.old});
  if (out.old.size() == 1 && out.displacements[0] == 0) return out.old[0];
  return type(std::move(out));
}

// Returns an indexed type of `count` blocks; block(i) is the length and the position of block i.
template <class Block>
TypeExprPtr lower_list(const char* name, std::int64_t count, const TypeExprPtr& old, Block block) {
  limit(name, count, kMostBlocks, "blocks");
  const auto extent = type_bounds(*old).extent;
  Hindexed out{{}, {}, old};
  for (std::int64_t i = 0; i < count; ++i) {
    const auto [length, position] = block(i);
    out.blocklengths.push_back(length);
    out.displacements.push_back(checked_multiply(position, extent));
  }
  return type(std::move(out));
}

}  // namespace

const char* wrong_arguments(const BoundedVector& t) {
  return wrong_blocks(t);
}
const char* wrong_arguments(const CircularVector& t) {
  return t.bound < 1 ? "a bound of at least 1" : wrong_blocks(t);
}
const char* wrong_arguments(const Bucket& t) {
  const bool negative =
      std::any_of(t.counts.begin(), t.counts.end(), [](auto count) { return count < 0; });
  return negative ? "counts of which none is negative" : nullptr;
}
const char* wrong_arguments(const StretchedVector& t) {
  if (t.index < 0 || t.index >= t.types) return "0 <= index < types";
  const bool right =
      std::is_sorted(t.ends->begin(), t.ends->end()) && (t.ends->empty() || t.ends->front() >= 0);
  return right ? nullptr : "blocks of which none is of a negative length";
}
const char* wrong_arguments(const Triangular& t) {
  if (t.count < 0) return "a count that is not negative";
  const bool negative =
      t.count > 0 && (t.blocklength < 0 ||
                      checked_add(t.blocklength, checked_multiply(t.count - 1, t.change)) < 0);
  return negative ? "blocks of which none is of a negative length" : nullptr;
}

std::vector<StridedBlocks> strided_blocks(const BoundedVector& t) {
  check_arguments(t);
  check_numbers(t.start, t.blocklength, t.stride, t.bound);
  std::vector<StridedBlocks> out;
  if (t.start < t.bound) add_blocks(out, t, t.start, t.bound, 0);
  return out;
}

std::vector<StridedBlocks> strided_blocks(const CircularVector& t) {
  check_arguments(t);
  check_numbers(t.start, t.blocklength, t.stride, t.end, t.bound);
  std::vector<StridedBlocks> out;
  if (t.blocklength == 0 || t.start >= t.end) return out;
  limit("circular_vector", (t.end - t.start) / t.bound, kMostTurns, "turns");
  for (auto begin = t.start; begin < t.end;) {
    const auto inside = (begin % t.bound + t.bound) % t.bound;
    const auto end = std::min(begin + (t.bound - inside), t.end);
    add_blocks(out, t, begin, end, inside - begin);
    begin = end;
  }
  return out;
}

TypeExprPtr lower(const BoundedVector& t) {
  return lower_blocks(t);
}
TypeExprPtr lower(const CircularVector& t) {
  return lower_blocks(t);
}

TypeExprPtr lower(const Bucket& t) {
  check_arguments(t);
  return lower_list("bucket", std::ssize(t.counts), t.old, [&](std::int64_t i) {
    return std::pair{t.counts[static_cast<std::size_t>(i)], checked_multiply(i, t.size)};
  });
}

TypeExprPtr lower(const StretchedVector& t) {
  check_arguments(t);
  std::int64_t begin = 0;
  return lower_list("stretched_vector", std::ssize(*t.ends), t.old, [&](std::int64_t i) {
    const auto end = (*t.ends)[static_cast<std::size_t>(i)], length = end - begin;
    const auto position = checked_add(checked_multiply(t.index, length),
                                      checked_multiply(t.types, std::exchange(begin, end)));
    return std::pair{length, position};
  });
}

TypeExprPtr lower(const Triangular& t) {
  check_arguments(t);
  if (t.count <= 1 || t.change == 0) {
    const auto extent = type_bounds(*t.old).extent;
    return type(Hvector{t.count, t.blocklength, checked_multiply(t.stride, extent), t.old});
  }
  return lower_list("triangular", t.count, t.old, [&](std::int64_t i) {
    return std::pair{t.blocklength + i * t.change, checked_multiply(i, t.stride)};
  });
}

}  // namespace halocline::dtype
