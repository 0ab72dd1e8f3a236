// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/lower.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "dtype/support/narrow.hpp"
#include "dtype/type_tree.hpp"

namespace halocline::dtype {

namespace {

// Blocks in ascending order, collected as a struct of vectors.
class Pieces {
 public:
  explicit Pieces(TypeExprPtr old) : old_(std::move(old)), extent_(type_bounds(*old_).extent) {}

  void add(std::int64_t position, std::int64_t count, std::int64_t blocklength,
           std::int64_t stride) {
    if (count == 0 || blocklength == 0) return;
    members_.blocklengths.push_back(1);
    members_.displacements.push_back(checked_multiply(position, extent_));
    members_.old.push_back(count == 1 ? type(Contiguous{blocklength, old_})
                                      : type(Vector{count, blocklength, stride, old_}));
  }

  TypeExprPtr finish() {
    if (members_.old.empty()) return type(Contiguous{0, old_});
    if (members_.old.size() == 1 && members_.displacements[0] == 0) return members_.old[0];
    return type(std::move(members_));
  }

 private:
  TypeExprPtr old_;
  std::int64_t extent_;
  Struct members_;
};

// The elements in [begin, end) of blocks at start, start + stride, ..., moved by `shift`; start is
// at most `begin`.
template <class Constructor>
void add_blocks(Pieces& pieces, const Constructor& t, std::int64_t begin, std::int64_t end,
                std::int64_t shift) {
  auto block = begin - (begin - t.start) % t.stride;
  const auto add_one = [&] {
    const auto first = std::max(block, begin), last = std::min(block + t.blocklength, end);
    if (first < last) pieces.add(checked_add(first, shift), 1, last - first, t.stride);
    block += t.stride;
  };
  if (block < begin) add_one();
  const auto whole = end - block < t.blocklength ? 0 : (end - block - t.blocklength) / t.stride + 1;
  pieces.add(checked_add(block, shift), whole, t.blocklength, t.stride);
  block += whole * t.stride;
  if (block < end) add_one();
}

// Throws for what would overflow a sum.
template <class Constructor>
void check(const Constructor& t) {
  for (const auto number : {t.start, t.blocklength, t.stride}) checked_bytes(number, false);
}

}  // namespace

TypeExprPtr lower(const BoundedVector& t) {
  check(t);
  Pieces pieces(t.old);
  if (t.start < checked_bytes(t.bound, false)) add_blocks(pieces, t, t.start, t.bound, 0);
  return pieces.finish();
}

TypeExprPtr lower(const CircularVector& t) {
  check(t);
  checked_bytes(t.end, false), checked_bytes(t.bound, false);
  Pieces pieces(t.old);
  // Turn by turn.
  for (auto begin = t.start; begin < t.end;) {
    const auto inside = (begin % t.bound + t.bound) % t.bound;
    const auto end = std::min(begin + (t.bound - inside), t.end);
    add_blocks(pieces, t, begin, end, inside - begin);
    begin = end;
  }
  return pieces.finish();
}

TypeExprPtr lower(const Bucket& t) {
  Indexed out{t.counts, {}, t.old};
  out.displacements.reserve(t.counts.size());
  for (std::int64_t i = 0; i < std::ssize(t.counts); ++i)
    out.displacements.push_back(checked_multiply(i, t.size));
  return type(std::move(out));
}

TypeExprPtr lower(const StretchedVector& t) {
  Indexed out{{}, {}, t.old};
  std::int64_t begin = 0;
  for (const auto end : *t.ends) {
    const auto length = end - begin;
    out.blocklengths.push_back(length);
    out.displacements.push_back(
        checked_add(checked_multiply(t.index, length), checked_multiply(t.types, begin)));
    begin = end;
  }
  return type(std::move(out));
}

TypeExprPtr lower(const Triangular& t) {
  Indexed out{{}, {}, t.old};
  for (std::int64_t i = 0; i < t.count; ++i) {
    out.blocklengths.push_back(checked_add(t.blocklength, checked_multiply(i, t.change)));
    out.displacements.push_back(checked_multiply(i, t.stride));
  }
  return type(std::move(out));
}

}  // namespace halocline::dtype
