// SPDX-License-Identifier: BSD-3-Clause
#include "random_call.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "dtype/support/overload.hpp"
#include "dtype/type_tree.hpp"

namespace halocline::dtype::test {

namespace {

// Enough for packers that work in steps of some KiB to take several.
constexpr std::int64_t kLargeBytes = 65536;

bool fits(const TypeBounds& bounds, std::int64_t count, std::int64_t max_bytes) {
  const auto max_span = 16 * max_bytes;
  return bounds.size * count <= max_bytes && std::abs(bounds.true_lb) <= max_span &&
         bounds.true_extent + std::abs(bounds.extent) * count <= max_span;
}

// The constructor around `expr`, around another type; `expr` must not be a named type or a struct.
TypeExprPtr with_old(const TypeExpr& expr, TypeExprPtr old) {
  return std::visit(
      [&](auto t) -> TypeExprPtr {
        if constexpr (requires { t.old = old; }) t.old = std::move(old);
        return type(std::move(t));
      },
      expr.node);
}

// The one type inside, or null.
TypeExprPtr old_of(const TypeExpr& expr) {
  return std::visit(
      [](const auto& t) -> TypeExprPtr {
        if constexpr (requires { TypeExprPtr(t.old); }) {
          return t.old;
        } else {
          return nullptr;
        }
      },
      expr.node);
}

// A few numbers that are nearer to `goal` than `value` is.
std::vector<std::int64_t> nearer(std::int64_t value, std::int64_t goal) {
  if (value == goal) return {};
  std::vector<std::int64_t> out = {goal};
  if (const auto half = goal + (value - goal) / 2; half != goal) out.push_back(half);
  if (const auto step = value > goal ? value - 1 : value + 1; step != goal) out.push_back(step);
  return out;
}

// The constructor of `expr` with one of its numbers made smaller.
std::vector<TypeExprPtr> smaller_numbers(const TypeExpr& expr) {
  std::vector<TypeExprPtr> out;
  const auto vary = [&out](const auto& t, auto member, std::int64_t goal) {
    for (const auto value : nearer(t.*member, goal)) {
      auto copy = t;
      copy.*member = value;
      out.push_back(type(std::move(copy)));
    }
  };
  const auto vary_strided = [&](const auto& t) {
    using T = std::remove_cvref_t<decltype(t)>;
    vary(t, &T::count, 1);
    vary(t, &T::blocklength, 1);
    vary(t, &T::stride, t.stride < 0 ? -1 : 1);
  };
  std::visit(Overload{
                 [&](const Named& t) {
                   if (t.type->name != "byte") out.push_back(named("byte"));
                 },
                 [&](const Contiguous& t) { vary(t, &Contiguous::count, 1); },
                 [&](const Vector& t) { vary_strided(t); },
                 [&](const Hvector& t) { vary_strided(t); },
                 [&](const Subarray& t) {
                   for (std::size_t d = 0; d < t.sizes.size(); ++d) {
                     const auto index = static_cast<std::ptrdiff_t>(d);
                     if (t.sizes.size() > 1) {
                       auto copy = t;
                       copy.sizes.erase(copy.sizes.begin() + index);
                       copy.subsizes.erase(copy.subsizes.begin() + index);
                       copy.starts.erase(copy.starts.begin() + index);
                       out.push_back(type(std::move(copy)));
                     }
                     const auto push_if_legal = [&](std::int64_t size, std::int64_t subsize,
                                                    std::int64_t start) {
                       if (subsize < 1 || start < 0 || start + subsize > size) return;
                       auto copy = t;
                       copy.sizes[d] = size, copy.subsizes[d] = subsize, copy.starts[d] = start;
                       out.push_back(type(std::move(copy)));
                     };
                     push_if_legal(t.sizes[d] - 1, t.subsizes[d], t.starts[d]);
                     push_if_legal(t.sizes[d], t.subsizes[d] - 1, t.starts[d]);
                     push_if_legal(t.sizes[d], t.subsizes[d], t.starts[d] - 1);
                   }
                 },
                 [&](const Resized& t) {
                   vary(t, &Resized::lb, 0);
                   vary(t, &Resized::extent, 0);
                 },
                 [](const auto&) {},
             },
             expr.node);
  return out;
}

std::vector<TypeExprPtr> simpler(const TypeExprPtr& expr) {
  std::vector<TypeExprPtr> out;
  const auto old = old_of(*expr);
  if (old) out.push_back(old);
  for (auto& variant : smaller_numbers(*expr)) out.push_back(std::move(variant));
  if (old)
    for (auto& inner : simpler(old)) out.push_back(with_old(*expr, std::move(inner)));
  return out;
}

std::vector<Call> simpler(const Call& call) {
  std::vector<Call> out;
  const auto push = [&](auto member, auto value) {
    out.push_back(call);
    out.back().*member = std::move(value);
  };
  for (const auto value : nearer(call.count, 1)) push(&Call::count, value);
  for (const auto value : nearer(call.memory_offset, 0)) push(&Call::memory_offset, value);
  for (const auto value : nearer(call.packed_offset, 0)) push(&Call::packed_offset, value);
  for (auto& expr : simpler(call.expr)) push(&Call::expr, std::move(expr));
  return out;
}

}  // namespace

// Modulo instead of std::uniform_int_distribution, whose results differ between standard libraries.
std::int64_t CallGenerator::between(std::int64_t first, std::int64_t last) {
  return first +
         static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(last - first + 1));
}

Call CallGenerator::next() {
  while (true) {
    const std::int64_t max_bytes = one_in(10) ? kLargeBytes : 4096;
    const auto depth = static_cast<int>(std::min<std::int64_t>(between(0, 7), 4));
    Call call{.expr = draw(depth, max_bytes), .count = one_in(16) ? 0 : between(1, 3)};
    if (one_in(3)) call.memory_offset = between(1, 15);
    if (one_in(3)) call.packed_offset = between(1, 15);
    if (fits(type_bounds(*call.expr), call.count, max_bytes)) return call;
  }
}

TypeExprPtr CallGenerator::draw(int depth, std::int64_t max_bytes) {
  if (depth == 0) return draw_named();
  const auto old = draw(depth - 1, max_bytes);
  constexpr int kAttempts = 20;
  for (int i = 0; i < kAttempts; ++i)
    if (auto candidate = wrap(old, max_bytes == kLargeBytes);
        fits(type_bounds(*candidate), 1, max_bytes))
      return candidate;
  return old;
}

TypeExprPtr CallGenerator::wrap(const TypeExprPtr& old, bool large) {
  switch (between(1, 8)) {
    case 1:
      return type(Contiguous{one_in(8) ? between(1, 512) : draw_count(large), old});
    case 2:
    case 3: {
      const auto blocklength = draw_count(large);
      return type(Vector{draw_count(large), blocklength, draw_stride(blocklength), old});
    }
    case 4:
    case 5: {
      const auto blocklength = draw_count(large);
      const auto extent = type_bounds(*old).extent;
      // Multiples of the extent fold with what is inside; odd byte strides misalign it.
      const auto stride =
          one_in(2) ? draw_stride(blocklength) * extent : (one_in(4) ? -1 : 1) * between(0, 40);
      return type(Hvector{draw_count(large), blocklength, stride, old});
    }
    case 6:
      return draw_subarray(old);
    case 7:
      return draw_resized(old);
    default:
      return type(Dup{old});
  }
}

TypeExprPtr CallGenerator::draw_named() {
  constexpr std::string_view kUsual[] = {"byte", "short", "int", "float", "double"};
  if (one_in(2)) return named(kUsual[between(0, std::ssize(kUsual) - 1)]);
  while (true) {
    const auto& all = named_types();
    const auto& any = all[static_cast<std::size_t>(between(0, std::ssize(all) - 1))];
    if (any.name != "short_int") return type(Named{&any});  // has a hole inside: not strided
  }
}

TypeExprPtr CallGenerator::draw_subarray(const TypeExprPtr& old) {
  Subarray t{one_in(2) ? Order::c : Order::fortran, {}, {}, {}, old};
  const auto dimensions = between(1, 4);
  for (std::int64_t d = 0; d < dimensions; ++d) {
    t.sizes.push_back(between(1, 5));
    // Whole dimensions fold; they are drawn often enough to be met in every combination.
    t.subsizes.push_back(one_in(3) ? t.sizes.back() : between(1, t.sizes.back()));
    t.starts.push_back(between(0, t.sizes.back() - t.subsizes.back()));
  }
  return type(std::move(t));
}

TypeExprPtr CallGenerator::draw_resized(const TypeExprPtr& old) {
  const auto bounds = type_bounds(*old);
  const auto lb = one_in(3) ? bounds.true_lb : one_in(2) ? 0 : between(-20, 20);
  switch (between(1, 7)) {
    case 1:
      return type(Resized{old, lb, bounds.extent});
    case 2:
      return type(Resized{old, lb, bounds.true_extent});
    case 3:
      return type(Resized{old, lb, bounds.true_extent / 2});
    case 4:
      return type(Resized{old, lb, -bounds.extent});
    case 5:
      return type(Resized{old, lb, 0});
    case 6:
      return type(Resized{old, lb, 2 * bounds.extent});
    default:
      return type(Resized{old, lb, between(-16, 64)});
  }
}

std::int64_t CallGenerator::draw_count(bool large) {
  if (one_in(25)) return 0;
  return between(1, large ? 60 : one_in(3) ? 7 : 3);
}

// In units of blocks' elements; `fold` is the stride at which the blocks adjoin.
std::int64_t CallGenerator::draw_stride(std::int64_t fold) {
  if (one_in(20)) return 0;
  if (one_in(4)) return fold;
  return (one_in(5) ? -1 : 1) * between(1, 6);
}

std::vector<TypeExprPtr> nesting(const TypeExprPtr& expr) {
  std::vector<TypeExprPtr> out;
  for (auto at = expr; at != nullptr; at = old_of(*at)) out.push_back(at);
  return out;
}

bool any_stride(const Call& call, const std::function<bool(std::int64_t)>& predicate) {
  if (call.count > 1 && predicate(type_bounds(*call.expr).extent)) return true;
  const auto tree = std::get<TypeTree>(translate(*call.expr));
  for (const TreeNode* at = tree.root.get(); at != nullptr;) {
    if (const auto* vec = std::get_if<Vec>(&at->node)) {
      if (vec->count > 1 && predicate(vec->stride)) return true;
      at = vec->child.get();
    } else if (const auto* idx = std::get_if<Idx>(&at->node)) {
      at = idx->child.get();
    } else {
      at = nullptr;
    }
  }
  return false;
}

Call shrink(Call call, const std::function<bool(const Call&)>& still_fails) {
  for (bool shrunk = true; shrunk;) {
    shrunk = false;
    for (auto& candidate : simpler(call)) {
      if (!still_fails(candidate)) continue;
      call = std::move(candidate);
      shrunk = true;
      break;
    }
  }
  return call;
}

}  // namespace halocline::dtype::test
