// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/reconstruct/signature.hpp"

#include <cstdint>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "dtype/reconstruct/normalize.hpp"
#include "dtype/reconstruct/typed_sequence.hpp"
#include "dtype/type_tree.hpp"
#include "support/overload.hpp"

namespace halocline::dtype {

namespace {

struct Packed {
  TreeNodePtr tree;  // all leaves stand one behind the other
  std::int64_t size;
};

class Compaction {
 public:
  const Packed& operator()(const TreeNodePtr& tree) {
    if (const auto found = packed_.find(tree.get()); found != packed_.end()) return found->second;
    auto out = std::visit(
        Overload{
            [](const Leaf& t) -> Packed {
              return {tree_node(t), t.bytes};
            },
            [&](const Vec& t) { return times(t.count, t.child); },
            [&](const Idx& t) { return times(std::ssize(t.displacements), t.child); },
            [&](const IdxBuc& t) {
              return times(
                  std::accumulate(t.blocklengths.begin(), t.blocklengths.end(), std::int64_t{0}),
                  t.child);
            },
            [&](const RuleBuc& t) { return times(t.rule.elements(), t.child); },
            [&](const Strc& t) -> Packed {
              Strc members;
              std::int64_t size = 0;
              for (const auto& child : t.children) {
                const auto& member = (*this)(child);
                members.displacements.push_back(size);
                members.children.push_back(member.tree);
                size += member.size;
              }
              return {tree_node(std::move(members)), size};
            },
        },
        tree->node);
    return packed_[tree.get()] = std::move(out);
  }

 private:
  Packed times(std::int64_t count, const TreeNodePtr& child) {
    const auto& one = (*this)(child);
    return {tree_node(Vec{count, one.size, one.tree}), count * one.size};
  }

  std::unordered_map<const TreeNode*, Packed> packed_;
};

// ---- Hashes: the elements are the digits of a number, modulo 2^61 - 1

constexpr std::uint64_t kModulus = (std::uint64_t{1} << 61) - 1;

constexpr std::uint64_t reduced(std::uint64_t x) {
  x = (x & kModulus) + (x >> 61);
  return x >= kModulus ? x - kModulus : x;
}

// Multiplies numbers below 2^61 by halves, modulo 2^61 - 1: 2^61 counts as 1.
constexpr std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kLow30 = (1u << 30) - 1, kLow31 = (1u << 31) - 1;
  const auto middle = (a >> 31) * (b & kLow31) + (a & kLow31) * (b >> 31);
  const auto high = 2 * (a >> 31) * (b >> 31) + (middle >> 30);
  return reduced(reduced(high + ((middle & kLow30) << 31)) + reduced((a & kLow31) * (b & kLow31)));
}

/// Holds a sequence of basic types as a number, and the base to the power of its length.
struct Digits {
  std::uint64_t value = 0, shift = 1;
  std::int64_t elements = 0;

  Digits followed_by(const Digits& next) const {
    return {reduced(product(value, next.shift) + next.value), product(shift, next.shift),
            elements + next.elements};
  }
  // Returns `count` copies of the sequence, by squaring.
  Digits times(std::int64_t count) const {
    Digits out, power = *this;
    for (; count > 0; count /= 2) {
      if (count % 2 == 1) out = out.followed_by(power);
      if (count > 1) power = power.followed_by(power);
    }
    return out;
  }
};

Digits digit_of(const Leaf& leaf) {
  constexpr std::uint64_t kBase = 0x1A2B3C4D5E6F7081u;  // arbitrary
  std::uint64_t value = static_cast<std::uint64_t>(leaf.bytes);
  if (leaf.type != nullptr)
    for (const char c : leaf.type->name)
      value = reduced(product(value, kBase) + static_cast<unsigned char>(c));
  return {value, reduced(kBase), 1};
}

class Hashing {
 public:
  Digits operator()(const TreeNodePtr& tree) {
    if (const auto found = digits_.find(tree.get()); found != digits_.end()) return found->second;
    const auto digits = std::visit(
        Overload{
            [](const Leaf& t) { return digit_of(t); },
            [&](const Vec& t) { return (*this)(t.child).times(t.count); },
            [&](const Idx& t) { return (*this)(t.child).times(std::ssize(t.displacements)); },
            [&](const IdxBuc& t) {
              return (*this)(t.child).times(
                  std::accumulate(t.blocklengths.begin(), t.blocklengths.end(), std::int64_t{0}));
            },
            [&](const RuleBuc& t) { return (*this)(t.child).times(t.rule.elements()); },
            [&](const Strc& t) {
              Digits all;
              for (const auto& child : t.children) all = all.followed_by((*this)(child));
              return all;
            },
        },
        tree->node);
    return digits_[tree.get()] = digits;
  }

 private:
  std::unordered_map<const TreeNode*, Digits> digits_;
};

}  // namespace

SignatureHash signature_hash(const TypeExpr& expr) {
  const auto tree = translate(expr);
  const auto digits = Hashing()(tree.root);
  return {digits.elements, digits.value};
}

TypeExprPtr signature_type(const TypeExpr& expr) {
  const auto tree = translate(expr);
  const auto [packed, size] = Compaction()(tree.root);
  const TypeBounds bounds{size, 0, size, 0, size};
  return to_type_expr({normalize(packed).root, bounds});
}

}  // namespace halocline::dtype
