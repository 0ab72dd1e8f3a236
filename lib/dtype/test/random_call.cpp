// SPDX-License-Identifier: BSD-3-Clause
#include "random_call.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string_view>
#include <utility>

#include "dtype/datatype.hpp"
#include "dtype/lower.hpp"
#include "dtype/type_map.hpp"
#include "support/error.hpp"
#include "support/overload.hpp"

namespace halocline::dtype::test {

namespace {

constexpr std::int64_t kUsualBytes = 2048;
// Large enough that packers with steps of some KiB take several steps.
constexpr std::int64_t kLargeBytes = 65536;
constexpr std::int64_t kSpanPerByte = CallGenerator::kMaxSpan / kLargeBytes;

bool fits(const TypeBounds& bounds, std::int64_t count, std::int64_t max_bytes) {
  const auto max_span = kSpanPerByte * max_bytes;
  return bounds.size * count <= max_bytes && std::abs(bounds.true_lb) <= max_span &&
         bounds.true_extent + std::abs(bounds.extent) * count <= max_span;
}

// Returns the constructor of `expr` with its i-th inner type replaced.
TypeExprPtr with_old(const TypeExpr& expr, std::size_t i, TypeExprPtr old) {
  return std::visit(
      [&](auto t) -> TypeExprPtr {
        if constexpr (requires { t.old = old; })
          t.old = std::move(old);
        else if constexpr (requires { t.old[i] = old; })
          t.old[i] = std::move(old);
        return type(std::move(t));
      },
      expr.node);
}

// Tells if the parser, which knows MPI's rules for the arguments, accepts `expr`.
bool legal(const TypeExpr& expr) {
  try {
    parse_type(to_string(expr));
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

// Returns a few numbers that are nearer to `goal` than `value`.
std::vector<std::int64_t> nearer(std::int64_t value, std::int64_t goal) {
  if (value == goal) return {};
  std::vector<std::int64_t> out = {goal};
  if (const auto half = goal + (value - goal) / 2; half != goal) out.push_back(half);
  if (const auto step = value > goal ? value - 1 : value + 1; step != goal) out.push_back(step);
  return out;
}

// Lists variants of one constructor, each with a change that makes it simpler.
template <class T>
class Variants {
 public:
  explicit Variants(const T& original) : original_(original) {}

  template <class Change>
  void add(Change change) {
    T copy = original_;
    change(copy);
    out_.push_back(type(std::move(copy)));
  }

  void number(std::int64_t T::*member, std::int64_t goal) {
    for (const auto value : nearer(original_.*member, goal)) add([&](T& t) { t.*member = value; });
  }

  void numbers(std::vector<std::int64_t> T::*list, std::int64_t goal) {
    for (std::size_t i = 0; i < (original_.*list).size(); ++i)
      for (const auto value : nearer((original_.*list)[i], goal))
        add([&](T& t) { (t.*list)[i] = value; });
  }

  // Drops entries from all lists, which have the same length: halves first, then one by one.
  template <class... List>
  void shorter(std::size_t length, List... list) {
    const auto drop = [&](std::size_t begin, std::size_t end) {
      add([&](T& t) {
        ((t.*list).erase((t.*list).begin() + static_cast<std::ptrdiff_t>(begin),
                         (t.*list).begin() + static_cast<std::ptrdiff_t>(end)),
         ...);
      });
    };
    if (length > 3) drop(0, length / 2), drop(length / 2, length);
    for (std::size_t i = 0; i < length; ++i) drop(i, i + 1);
  }

  std::vector<TypeExprPtr> take() { return std::move(out_); }
  std::vector<TypeExprPtr> take_legal() {
    std::erase_if(out_, [](const auto& expr) { return !legal(*expr); });
    return take();
  }

 private:
  const T& original_;
  std::vector<TypeExprPtr> out_;
};

// Returns the constructor of `expr` with a shorter list or smaller numbers.
std::vector<TypeExprPtr> simpler_arguments(const TypeExpr& expr) {
  const auto strided = [](const auto& t) {
    using T = std::remove_cvref_t<decltype(t)>;
    Variants out(t);
    out.number(&T::count, 1);
    out.number(&T::blocklength, 1);
    out.number(&T::stride, t.stride < 0 ? -1 : 1);
    return out.take();
  };
  const auto indexed = [](const auto& t) {
    using T = std::remove_cvref_t<decltype(t)>;
    Variants out(t);
    out.shorter(t.displacements.size(), &T::blocklengths, &T::displacements);
    out.numbers(&T::blocklengths, 1);
    out.numbers(&T::displacements, 0);
    return out.take();
  };
  const auto indexed_block = [](const auto& t) {
    using T = std::remove_cvref_t<decltype(t)>;
    Variants out(t);
    out.shorter(t.displacements.size(), &T::displacements);
    out.number(&T::blocklength, 1);
    out.numbers(&T::displacements, 0);
    return out.take();
  };
  return std::visit(
      Overload{
          [](const Named& t) -> std::vector<TypeExprPtr> {
            if (t.type->name == "byte") return {};
            return {named("byte")};
          },
          [](const Contiguous& t) {
            Variants out(t);
            out.number(&Contiguous::count, 1);
            return out.take();
          },
          [&](const Vector& t) { return strided(t); },
          [&](const Hvector& t) { return strided(t); },
          [&](const Indexed& t) { return indexed(t); },
          [&](const Hindexed& t) { return indexed(t); },
          [&](const IndexedBlock& t) { return indexed_block(t); },
          [&](const HindexedBlock& t) { return indexed_block(t); },
          [](const Struct& t) {
            Variants out(t);
            out.shorter(t.old.size(), &Struct::blocklengths, &Struct::displacements, &Struct::old);
            out.numbers(&Struct::blocklengths, 1);
            out.numbers(&Struct::displacements, 0);
            return out.take();
          },
          [](const Subarray& t) {
            Variants out(t);
            out.shorter(t.sizes.size(), &Subarray::sizes, &Subarray::subsizes, &Subarray::starts);
            out.numbers(&Subarray::sizes, 1);
            out.numbers(&Subarray::subsizes, 1);
            out.numbers(&Subarray::starts, 0);
            return out.take_legal();
          },
          [](const Darray& t) {
            Variants out(t);
            for (std::size_t d = 0; d < t.psizes.size(); ++d)
              for (const auto processes : nearer(t.psizes[d], 1))
                for (std::int64_t rank = 0; rank <= t.rank; ++rank)
                  out.add([&](Darray& other) {
                    other.size = t.size / t.psizes[d] * processes;
                    other.psizes[d] = processes;
                    other.rank = rank;
                  });
            out.shorter(t.gsizes.size(), &Darray::gsizes, &Darray::distribs, &Darray::dargs,
                        &Darray::psizes);
            out.numbers(&Darray::gsizes, 1);
            out.numbers(&Darray::dargs, kDefaultDarg);
            out.number(&Darray::rank, 0);
            return out.take_legal();
          },
          [](const Resized& t) {
            Variants out(t);
            out.number(&Resized::lb, 0);
            out.number(&Resized::extent, 0);
            return out.take();
          },
          [](const Dup&) { return std::vector<TypeExprPtr>(); },
          [](const BoundedVector& t) {
            Variants out(t);
            out.number(&BoundedVector::start, 0);
            out.number(&BoundedVector::blocklength, 1);
            out.number(&BoundedVector::stride, 1);
            out.number(&BoundedVector::bound, 1);
            return out.take_legal();
          },
          [](const CircularVector& t) {
            Variants out(t);
            out.number(&CircularVector::start, 0);
            out.number(&CircularVector::blocklength, 1);
            out.number(&CircularVector::stride, 1);
            out.number(&CircularVector::end, 1);
            out.number(&CircularVector::bound, 1);
            return out.take_legal();
          },
          [](const Bucket& t) {
            Variants out(t);
            out.shorter(t.counts.size(), &Bucket::counts);
            out.number(&Bucket::size, 1);
            out.numbers(&Bucket::counts, 1);
            return out.take();
          },
          [](const StretchedVector& t) {
            Variants out(t);
            out.number(&StretchedVector::types, 1);
            out.number(&StretchedVector::index, 0);
            return out.take_legal();
          },
          [](const Triangular& t) {
            Variants out(t);
            out.number(&Triangular::count, 1);
            out.number(&Triangular::blocklength, 1);
            out.number(&Triangular::change, 0);
            out.number(&Triangular::stride, 1);
            return out.take_legal();
          },
      },
      expr.node);
}

std::vector<TypeExprPtr> simpler(const TypeExprPtr& expr) {
  auto out = types_inside(*expr);
  const auto olds = out;
  for (auto& variant : simpler_arguments(*expr)) out.push_back(std::move(variant));
  for (std::size_t i = 0; i < olds.size(); ++i)
    for (auto& inner : simpler(olds[i])) out.push_back(with_old(*expr, i, std::move(inner)));
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

// Tells if a call keeps the generator's limits and MPI accepts its type.
bool usable(const Call& call) {
  try {
    make_datatype(*call.expr);
    return fits(type_bounds(*call.expr), call.count, kLargeBytes);
  } catch (const MpiError&) {
    return false;
  }
}

void collect(const TypeExprPtr& expr, std::vector<TypeExprPtr>& out) {
  if (std::find(out.begin(), out.end(), expr) != out.end()) return;
  out.push_back(expr);
  for (const auto& old : types_inside(*expr)) collect(old, out);
}

bool any_stride(const TreeNode& tree, const std::function<bool(std::int64_t)>& predicate) {
  const auto any_step = [&](const std::vector<std::int64_t>& displacements) {
    for (std::size_t i = 1; i < displacements.size(); ++i)
      if (predicate(displacements[i] - displacements[i - 1])) return true;
    return false;
  };
  const auto inside = [&](const TreeNodePtr& child) { return any_stride(*child, predicate); };
  return std::visit(
      Overload{
          [](const Leaf&) { return false; },
          [&](const Vec& n) { return (n.count > 1 && predicate(n.stride)) || inside(n.child); },
          [&](const Idx& n) { return any_step(n.displacements) || inside(n.child); },
          [&](const IdxBuc& n) {
            const bool repeats = std::any_of(n.blocklengths.begin(), n.blocklengths.end(),
                                             [](auto length) { return length > 1; });
            return (repeats && predicate(n.stride)) || any_step(n.displacements) || inside(n.child);
          },
          [&](const RuleBuc& n) { return any_stride({with_lists(n)}, predicate); },
          [&](const Strc& n) {
            return any_step(n.displacements) ||
                   std::any_of(n.children.begin(), n.children.end(), inside);
          },
      },
      tree.node);
}

}  // namespace

// Uses modulo, since std::uniform_int_distribution differs between standard libraries.
std::int64_t CallGenerator::between(std::int64_t first, std::int64_t last) {
  return first +
         static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(last - first + 1));
}

Call CallGenerator::next() {
  while (true) {
    const std::int64_t max_bytes = one_in(50) ? kLargeBytes : kUsualBytes;
    const auto depth = static_cast<int>(std::min<std::int64_t>(between(0, 7), 4));
    const auto drawn = draw(depth, max_bytes);
    Call call{.expr = drawn.expr, .count = one_in(16) ? 0 : between(1, 3)};
    if (one_in(3)) call.memory_offset = between(1, 15);
    if (one_in(3)) call.packed_offset = between(1, 15);
    if (fits(drawn.bounds, call.count, max_bytes)) return call;
  }
}

CallGenerator::Sized CallGenerator::draw(int depth, std::int64_t max_bytes) {
  if (depth == 0) {
    auto expr = draw_named();
    const auto bounds = type_bounds(*expr);
    return {std::move(expr), bounds};
  }
  auto old = draw(depth - 1, max_bytes);
  constexpr int kAttempts = 20;
  for (int i = 0; i < kAttempts; ++i) {
    auto candidate = wrap(old, depth, max_bytes);
    if (const auto bounds = type_bounds(*candidate); fits(bounds, 1, max_bytes))
      return {std::move(candidate), bounds};
  }
  return old;
}

TypeExprPtr CallGenerator::wrap(const Sized& sized, int depth, std::int64_t max_bytes) {
  const bool large = max_bytes == kLargeBytes;
  const auto& old = sized.expr;
  const auto extent = sized.bounds.extent;
  switch (between(1, 18)) {
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
      // Multiples of the extent fold with the type inside; odd byte strides misalign it.
      const auto stride =
          one_in(2) ? draw_stride(blocklength) * extent : (one_in(4) ? -1 : 1) * between(0, 40);
      return type(Hvector{draw_count(large), blocklength, stride, old});
    }
    case 6:
      return draw_subarray(old);
    case 7:
      return draw_resized(sized);
    case 8:
      return type(Dup{old});
    case 9:
    case 10: {
      auto blocks = draw_blocks(large, one_in(4));
      return type(Indexed{std::move(blocks.lengths), std::move(blocks.displacements), old});
    }
    case 11: {
      auto blocks = draw_blocks(large, one_in(4));
      return type(Hindexed{std::move(blocks.lengths),
                           in_bytes(std::move(blocks.displacements), extent), old});
    }
    case 12: {
      auto blocks = draw_blocks(large, true);
      const auto blocklength = blocks.lengths.empty() ? 1 : blocks.lengths.front();
      return type(IndexedBlock{blocklength, std::move(blocks.displacements), old});
    }
    case 13: {
      auto blocks = draw_blocks(large, true);
      const auto blocklength = blocks.lengths.empty() ? 1 : blocks.lengths.front();
      return type(
          HindexedBlock{blocklength, in_bytes(std::move(blocks.displacements), extent), old});
    }
    case 14:
    case 15:
      return draw_struct(sized, depth, max_bytes);
    case 16:
    case 17:
      return draw_further(old, large);
    default:
      // Open MPI 4.1.4 refuses darrays of types made of nothing.
      return sized.bounds.size == 0 ? type(Dup{old}) : draw_darray(old);
  }
}

TypeExprPtr CallGenerator::draw_named() {
  constexpr std::string_view kUsual[] = {"byte", "short", "int", "float", "double"};
  if (one_in(2)) return named(kUsual[between(0, std::ssize(kUsual) - 1)]);
  if (one_in(12)) return named("short_int");
  if (one_in(20)) {
    const auto kind = one_in(2) ? F90Kind::real : F90Kind::complex;
    if (const auto* found = find_f90_type(kind, one_in(2) ? 15 : 6, 37)) return named(*found);
  }
  const auto& all = named_types();
  return named(all[static_cast<std::size_t>(between(0, std::ssize(all) - 1))]);
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

TypeExprPtr CallGenerator::draw_darray(const TypeExprPtr& old) {
  Darray t{1, 0, {}, {}, {}, {}, one_in(2) ? Order::c : Order::fortran, old};
  const auto dimensions = between(1, 3);
  for (std::int64_t d = 0; d < dimensions; ++d) {
    const auto distribution = static_cast<Distribution>(between(0, 2));
    const auto gsize = between(1, 9);
    const auto psize = distribution == Distribution::none ? 1 : between(1, 3);
    const auto least = distribution == Distribution::block ? (gsize + psize - 1) / psize : 1;
    t.distribs.push_back(distribution);
    t.gsizes.push_back(gsize);
    t.psizes.push_back(psize);
    t.dargs.push_back(one_in(2) ? kDefaultDarg : between(least, least + 2));
    t.size *= psize;
  }
  t.rank = between(0, t.size - 1);
  return type(std::move(t));
}

// Draws a constructor that MPI does not have.
TypeExprPtr CallGenerator::draw_further(const TypeExprPtr& old, bool large) {
  const auto start = between(-6, 12), stride = between(1, 6);
  const auto blocklength = one_in(12) ? 0 : between(1, stride);
  const auto buckets = one_in(20) ? 0 : between(1, large || one_in(2) ? 40 : 7);
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < buckets; ++i) lengths.push_back(one_in(5) ? 0 : between(1, 5));
  switch (between(1, 5)) {
    case 1:
      return type(
          BoundedVector{start, blocklength, stride, start + between(-2, large ? 60 : 20), old});
    case 2:
      return type(CircularVector{start, blocklength, stride, start + between(-2, large ? 60 : 20),
                                 between(1, 30), old});
    case 3:
      return type(Bucket{one_in(4) ? between(-4, 4) : between(5, 7), std::move(lengths), old});
    case 4: {
      const auto types = between(1, 5);
      return stretched_vectors(types, lengths,
                               old)[static_cast<std::size_t>(between(1, types) - 1)];
    }
    default: {
      const auto change = between(-3, 3), count = between(0, large ? 40 : 12);
      return type(Triangular{count,
                             std::max<std::int64_t>(0, -change * (count - 1)) + between(0, 3),
                             change, one_in(4) ? between(-6, 6) : between(5, 30), old});
    }
  }
}

TypeExprPtr CallGenerator::draw_resized(const Sized& sized) {
  const auto& [old, bounds] = sized;
  const auto lb = one_in(3) ? bounds.true_lb : one_in(2) ? 0 : between(-20, 20);
  switch (between(1, 8)) {
    case 1:
    case 2:
      return type(Resized{old, lb, bounds.size});
    case 3:
      return type(Resized{old, bounds.true_lb, bounds.true_extent});
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

// Draws a struct with members like blocks: often one type, or side by side.
TypeExprPtr CallGenerator::draw_struct(const Sized& old, int depth, std::int64_t max_bytes) {
  const bool one_type = one_in(3);
  auto blocks = draw_blocks(false, one_type && one_in(2));
  Struct t;
  const bool side_by_side = one_in(3);
  std::int64_t end = 0;
  for (std::size_t i = 0; i < blocks.lengths.size(); ++i) {
    const auto member =
        one_type || one_in(3) ? old : draw(static_cast<int>(between(0, depth - 1)), max_bytes / 4);
    const auto at = side_by_side && !one_in(5) ? end
                    : one_in(2)                ? blocks.displacements[i] * old.bounds.extent
                                               : 4 * blocks.displacements[i] + between(0, 3);
    t.displacements.push_back(at);
    end = at + blocks.lengths[i] * member.bounds.extent;
    t.old.push_back(member.expr);
  }
  t.blocklengths = std::move(blocks.lengths);
  return type(std::move(t));
}

// Draws blocks with displacements in elements: at a stride, in a repeated pattern, mostly adjacent,
// or anywhere (unsorted, equal, overlapping).
CallGenerator::Blocks CallGenerator::draw_blocks(bool large, bool of_one_length) {
  Blocks out;
  const auto blocks = one_in(20) ? 0 : between(1, large ? 40 : one_in(3) ? 9 : 4);
  const auto style = between(1, 4), period = between(1, 3), length = draw_count(false);
  const auto stride = draw_stride(length), jump = between(-5, 15);
  for (std::int64_t i = 0; i < blocks; ++i) {
    const auto before = [&](const std::vector<std::int64_t>& list) {
      return list[list.size() - static_cast<std::size_t>(period)];
    };
    const bool repeats = style == 2 && i >= period;
    const auto end = i == 0 ? 0 : out.displacements.back() + out.lengths.back();
    out.displacements.push_back(style == 1   ? i * stride
                                : repeats    ? before(out.displacements) + jump
                                : style == 3 ? end + (one_in(4) ? between(-2, 4) : 0)
                                             : between(-12, 12));
    out.lengths.push_back(of_one_length ? length
                          : repeats     ? before(out.lengths)
                          : one_in(10)  ? 0
                                        : between(1, 4));
  }
  return out;
}

std::vector<std::int64_t> CallGenerator::in_bytes(std::vector<std::int64_t> displacements,
                                                  std::int64_t extent) {
  const auto unit = one_in(2) ? extent : between(1, 12);
  for (auto& displacement : displacements)
    displacement = displacement * unit + (one_in(20) ? between(-3, 3) : 0);
  return displacements;
}

std::int64_t CallGenerator::draw_count(bool large) {
  if (one_in(25)) return 0;
  return between(1, large ? 60 : one_in(3) ? 7 : 3);
}

// Draws a stride in elements of blocks; at the stride `fold`, the blocks adjoin.
std::int64_t CallGenerator::draw_stride(std::int64_t fold) {
  if (one_in(20)) return 0;
  if (one_in(4)) return fold;
  return (one_in(5) ? -1 : 1) * between(1, 6);
}

TypeExprPtr lowered(const TypeExprPtr& expr) {
  auto out = expr;
  const auto olds = types_inside(*expr);
  for (std::size_t i = 0; i < olds.size(); ++i)
    if (auto old = lowered(olds[i]); old != olds[i]) out = with_old(*out, i, std::move(old));
  return std::visit(
      [&](const auto& t) {
        if constexpr (requires { lower(t); })
          return lower(t);
        else
          return out;
      },
      out->node);
}

TypeExprPtr with_mpi_bounds(const TypeExprPtr& expr) {
  if (std::holds_alternative<Named>(expr->node)) return expr;
  auto out = expr;
  const auto olds = types_inside(*expr);
  for (std::size_t i = 0; i < olds.size(); ++i) {
    auto old = with_mpi_bounds(olds[i]);
    if (old == nullptr) return nullptr;
    if (old != olds[i]) out = with_old(*out, i, std::move(old));
  }
  const auto handle = make_datatype(*expr);
  MPI_Aint lb = 0, extent = 0, true_lb = 0, true_extent = 0;
  MPI_Type_get_extent(handle.get(), &lb, &extent);
  MPI_Type_get_true_extent(handle.get(), &true_lb, &true_extent);
  const auto map = type_map(*out);
  if (!map.entries.empty() && (map.true_lb != true_lb || map.true_extent != true_extent))
    return nullptr;
  return map.lb == lb && map.extent == extent ? out : type(Resized{out, lb, extent});
}

std::vector<TypeExprPtr> nesting(const TypeExprPtr& expr) {
  std::vector<TypeExprPtr> out;
  collect(expr, out);
  return out;
}

bool any_stride(const Call& call, const std::function<bool(std::int64_t)>& predicate) {
  const auto tree = translate(*call.expr);
  return (call.count > 1 && predicate(tree.bounds.extent)) || any_stride(*tree.root, predicate);
}

Call shrink(Call call, const std::function<bool(const Call&)>& still_fails) {
  for (bool shrunk = true; shrunk;) {
    shrunk = false;
    for (auto& candidate : simpler(call)) {
      if (!usable(candidate) || !still_fails(candidate)) continue;
      call = std::move(candidate);
      shrunk = true;
      break;
    }
  }
  return call;
}

}  // namespace halocline::dtype::test
