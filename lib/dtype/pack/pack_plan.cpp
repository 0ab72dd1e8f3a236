// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/pack_plan.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "support/overload.hpp"

namespace halocline::dtype {

namespace {

using detail::Atom;
using detail::AtomGroup;
using detail::innermost_level;
using detail::kLineBytes;
using detail::Op;
using detail::Program;
using detail::steps_without_overlap;
using detail::StridedOp;

// Limits of a repeated body that is taken apart: its bytes and its parts. A larger body is fast by
// its own loops. A chunk of repetitions stays in the nearest cache, of at least 32 KiB.
constexpr std::int64_t kMaxPartsBytes = 4096;
constexpr std::size_t kMaxParts = 64;
constexpr std::int64_t kChunkBytes = 16384;

constexpr auto kAny = std::numeric_limits<std::int64_t>::max();

StridedOp strided_op(std::int64_t displacement, std::int64_t packed_offset, std::int64_t run,
                     std::vector<LoopLevel> levels) {
  const auto innermost = innermost_level(run, levels);
  const auto free_steps = innermost > 0 ? steps_without_overlap(run, levels) : kAny;
  std::rotate(levels.begin(), levels.begin() + innermost,
              levels.begin() + std::min<std::ptrdiff_t>(innermost + 1, std::ssize(levels)));
  return {displacement, packed_offset, run, std::move(levels), innermost, free_steps};
}

struct Run {
  std::int64_t packed_offset, displacement;
  auto operator<=>(const Run&) const = default;
};
// Calls visit(run) for each run in the levels up to height `top`.
template <class Visit>
void for_each_run(const StridedOp& part, int top, const Visit& visit) {
  const auto visit_level = [&](const auto& self, int height, Run at) -> void {
    if (height < 0) return visit(at);
    const auto& level = part.level(height);
    for (auto i = level.count; i > 0; --i) {
      self(self, height - 1, at);
      at.packed_offset += level.packed_stride, at.displacement += level.stride;
    }
  };
  visit_level(visit_level, top, {part.packed_offset, part.displacement});
}

// Returns the most repetitions, `stride` bytes apart, of which no two pieces of parts overlap. kAny
// if any number is free of overlaps. 0 if the pieces of one repetition overlap, or if they are too
// many to tell. 0 also if a run reaches into its next repetition, since it may be cut into atoms.
std::int64_t repetitions_without_overlap(const std::vector<StridedOp>& parts, std::int64_t stride) {
  constexpr std::size_t kMostRuns = 512;
  struct Interval {
    std::int64_t begin, end;
    auto operator<=>(const Interval&) const = default;
  };
  std::vector<Interval> runs;
  std::int64_t least_gap = kAny;
  const auto are_disjoint = [&] {
    std::sort(runs.begin(), runs.end());
    least_gap = kAny;
    for (std::size_t i = 1; i < runs.size(); ++i)
      least_gap = std::min(least_gap, runs[i].begin - runs[i - 1].end);
    return least_gap >= 0;
  };
  for (const auto& part : parts) {
    std::int64_t count = 1;
    for (int height = 0; height < part.top(); ++height) count *= part.level(height).count;
    if (runs.size() + static_cast<std::size_t>(count) > kMostRuns) return 0;
    for_each_run(part, part.top() - 1, [&](const Run& at) {
      runs.push_back({at.displacement, at.displacement + part.run});
    });
  }
  const auto step = std::abs(stride);
  if (!are_disjoint()) return 0;
  if (step == 0) return kAny;
  const bool meets_itself =
      std::any_of(parts.begin(), parts.end(), [&](const auto& part) { return part.run > step; });
  if (meets_itself) return 0;
  const auto most = runs.size() == 1 ? kAny : least_gap / step + 1;
  // On a circle of the length of a step, all repetitions have the same places.
  const auto size = runs.size();
  for (std::size_t i = 0; i < size; ++i) {
    auto& [begin, end] = runs[i];
    const auto turns = (begin % step + step) % step - begin;
    begin += turns, end += turns;
    if (end > step) {
      const auto over = end - step;
      end = step;
      runs.push_back({0, over});
    }
  }
  return are_disjoint() ? kAny : most;
}

// Takes a body apart into strided loops; false if there are too many.
bool take_apart(const Dataloop& body, std::int64_t displacement, std::int64_t packed_offset,
                const std::vector<LoopLevel>& outer, std::vector<StridedOp>& parts) {
  const auto inside = [&](const Dataloop& inner, std::int64_t at, std::int64_t packed_at) {
    return take_apart(inner, displacement + at, packed_offset + packed_at, outer, parts);
  };
  return std::visit(
      Overload{
          [&](const StridedLoop& l) {
            if (parts.size() == kMaxParts) return false;
            auto levels = l.levels;
            levels.insert(levels.end(), outer.begin(), outer.end());
            parts.push_back(strided_op(displacement, packed_offset, l.run, std::move(levels)));
            return true;
          },
          [&](const VectorLoop& l) {
            auto with = outer;
            with.insert(with.begin(), {l.count, l.stride, l.body->size});
            return take_apart(*l.body, displacement, packed_offset, with, parts);
          },
          [&](const BlockIndexedLoop& l) {
            for (std::size_t i = 0; i < l.displacements.size(); ++i)
              if (!inside(*l.body, l.displacements[i], static_cast<std::int64_t>(i) * l.body->size))
                return false;
            return true;
          },
          [&](const IndexedLoop& l) {
            std::int64_t packed_at = 0;
            for (std::size_t i = 0; i < l.lengths.size(); ++i) {
              if (!inside({l.lengths[i], StridedLoop{l.lengths[i], {}}}, l.displacements[i],
                          packed_at))
                return false;
              packed_at += l.lengths[i];
            }
            return true;
          },
          [&](const RuleLoop& l) {
            if (l.rule.count > static_cast<std::int64_t>(kMaxParts)) return false;
            for (std::int64_t i = 0; i < l.rule.count; ++i) {
              const auto length = l.rule.length(i), bytes = length * l.body->size;
              const auto bucket = l.is_of_runs() ? Dataloop{bytes, StridedLoop{bytes, {}}}
                                  : length == 1
                                      ? *l.body
                                      : Dataloop{bytes, VectorLoop{length, l.stride, l.body}};
              if (length > 0 &&
                  !inside(bucket, l.rule.displacement(i), l.rule.begin(i) * l.body->size))
                return false;
            }
            return true;
          },
          [&](const StructLoop& l) {
            std::int64_t packed_at = 0;
            for (std::size_t i = 0; i < l.members.size(); ++i) {
              if (!inside(l.members[i], l.displacements[i], packed_at)) return false;
              packed_at += l.members[i].size;
            }
            return true;
          },
      },
      body.loop);
}

class Compiler {
 public:
  explicit Compiler(Program& program) : program_(program) {}

  // Compiles the root. The instances of a call become a loop around it. If they continue its
  // outermost loop, they become steps of that loop.
  void compile_root(CanonicalForm&& form) {
    auto& op = program_.root;
    const auto extent = form.bounds.extent;
    op.size = form.root.size;
    if (auto list = short_list(form.root)) program_.instance = add(std::move(*list));
    if (auto* strided = std::get_if<StridedLoop>(&form.root.loop)) {
      auto& levels = strided->levels;
      const bool dense = levels.empty() && extent == strided->run;
      const bool continues =
          !levels.empty() && extent == levels.back().count * levels.back().stride;
      if (!dense && !continues) {
        const auto alone = innermost_level(strided->run, levels);
        levels.push_back({1, extent, op.size});
        if (program_.instance < 0 && innermost_level(strided->run, levels) != alone) {
          StridedLoop one{strided->run, {levels.begin(), levels.end() - 1}};
          program_.instance = add(Dataloop{op.size, std::move(one)});
        }
      }
      op.strided = strided_op(0, 0, strided->run, std::move(levels));
      return;
    }
    const auto* vector = std::get_if<VectorLoop>(&form.root.loop);
    if (vector != nullptr && extent == vector->count * vector->stride)
      return make_repeat(op, vector->count, vector->stride, *vector->body);
    make_repeat(op, 1, extent, form.root);
    if (program_.instance < 0) program_.instance = op.children[0];
  }

 private:
  // Returns a small loop as one list, if its runs are of one length. Entering lists within lists,
  // structs and tiles of a few runs costs more than copying the runs.
  static std::optional<Op> short_list(const Dataloop& loop) {
    constexpr std::int64_t kMaxRuns = 128;  // more take longer than entering the loops
    // Most types end here, before anything is allocated.
    if (loop.size > kMaxRuns * kLineBytes) return std::nullopt;
    if (const auto* nest = std::get_if<StridedLoop>(&loop.loop);
        nest != nullptr && innermost_level(nest->run, nest->levels) == 0)
      return std::nullopt;
    if (is_list(loop)) return std::nullopt;
    std::vector<StridedOp> parts;
    if (!take_apart(loop, 0, 0, {}, parts)) return std::nullopt;
    std::vector<Run> runs;
    const auto run = parts[0].run;
    if (run >= kLineBytes || loop.size > kMaxRuns * run) return std::nullopt;
    for (const auto& part : parts) {
      if (part.run != run) return std::nullopt;
      for_each_run(part, part.top(), [&](const Run& at) { runs.push_back(at); });
    }
    std::sort(runs.begin(), runs.end());
    std::vector<std::int64_t> displacements;
    for (const auto& at : runs) displacements.push_back(at.displacement);
    Op op;
    op.size = loop.size;
    op.kind = Op::Kind::blocks;
    op.child_size = run;
    op.count = std::ssize(displacements);
    take_displacements(op, displacements, true);
    return op;
  }

  // Tells if a list holds nests of a few short runs each. Entering the loops costs more than
  // looking up every run.
  static bool is_dense_list(const BlockIndexedLoop& l) {
    constexpr std::int64_t kFewRuns = 16;  // a table of all runs grows by this factor at most
    const auto* nest = std::get_if<StridedLoop>(&l.body->loop);
    return nest != nullptr && !nest->levels.empty() && nest->run < kLineBytes &&
           nest->runs() <= kFewRuns;
  }

  static void make_list_of_nests(Op& op, const BlockIndexedLoop& l) {
    const auto& nest = std::get<StridedLoop>(l.body->loop);
    std::vector<std::int64_t> offsets = {0};
    for (const auto& level : nest.levels) {
      const auto before = offsets.size();
      for (std::int64_t step = 1; step < level.count; ++step)
        for (std::size_t i = 0; i < before; ++i)
          offsets.push_back(offsets[i] + step * level.stride);
    }
    std::vector<std::int64_t> displacements;
    displacements.reserve(l.displacements.size() * offsets.size());
    for (const auto displacement : l.displacements)
      for (const auto offset : offsets) displacements.push_back(displacement + offset);
    op.kind = Op::Kind::blocks;
    op.child_size = nest.run;
    op.count = std::ssize(displacements);
    take_displacements(op, displacements, true);
  }

  // Tells if a loop is a list of runs at displacements.
  static bool is_list(const Dataloop& loop) {
    const auto* blocks = std::get_if<BlockIndexedLoop>(&loop.loop);
    if (blocks == nullptr) return std::holds_alternative<IndexedLoop>(loop.loop);
    const auto* strided = std::get_if<StridedLoop>(&blocks->body->loop);
    return strided != nullptr && strided->levels.empty();
  }

  Op compile(const Dataloop& loop) {
    Op op;
    op.size = loop.size;
    std::visit(Overload{
                   [&](const StridedLoop& l) { op.strided = strided_op(0, 0, l.run, l.levels); },
                   [&](const VectorLoop& l) { make_repeat(op, l.count, l.stride, *l.body); },
                   [&](const BlockIndexedLoop& l) {
                     if (is_dense_list(l)) return make_list_of_nests(op, l);
                     op.count = std::ssize(l.displacements);
                     op.child_size = l.body->size;
                     const bool of_runs = is_list(loop);
                     op.kind = of_runs ? Op::Kind::blocks : Op::Kind::each;
                     if (!of_runs) op.children.push_back(add(*l.body));
                     take_displacements(op, l.displacements, of_runs);
                   },
                   [&](const IndexedLoop& l) { make_list(op, l); },
                   [&](const RuleLoop& l) { make_buckets(op, l); },
                   [&](const StructLoop& l) {
                     op.kind = Op::Kind::members;
                     op.count = std::ssize(l.members);
                     op.displacements = l.displacements;
                     std::int64_t end = 0;
                     for (const auto& member : l.members) {
                       op.children.push_back(add(member));
                       op.ends.push_back(end += member.size);
                     }
                   },
               },
               loop.loop);
    return op;
  }

  std::int32_t add(Op op) {
    program_.ops.push_back(std::move(op));
    return static_cast<std::int32_t>(program_.ops.size() - 1);
  }
  std::int32_t add(const Dataloop& loop) { return add(compile(loop)); }

  void make_repeat(Op& op, std::int64_t count, std::int64_t stride, const Dataloop& body) {
    op.kind = Op::Kind::repeat;
    op.count = count;
    make_children(op, stride, body);
  }

  // Compiles buckets of bodies, or of runs.
  void make_buckets(Op& op, const RuleLoop& l) {
    op.rule = l.rule;
    if (l.is_of_runs()) {
      op.kind = Op::Kind::runs;
      op.count = l.rule.count;
      op.child_size = l.stride;
    } else {
      op.kind = Op::Kind::buckets;
      op.count = l.rule.elements();
      make_children(op, l.stride, *l.body);
    }
  }

  // Adds a repeated body as a child and, if it is small, its parts.
  void make_children(Op& op, std::int64_t stride, const Dataloop& body) {
    op.stride = stride;
    op.child_size = body.size;
    op.children.push_back(add(body));
    if (body.size > kMaxPartsBytes) return;
    if (!take_apart(body, 0, 0, {{op.count, stride, body.size}}, op.parts)) {
      op.parts.clear();
      return;
    }
    const auto lines = lines_of(op.parts);
    const bool is_one_part = op.parts.size() == 1;
    op.free_repetitions = repetitions_without_overlap(op.parts, stride);
    group_short_runs(op);
    const bool one_pass = op.groups.size() + op.parts.size() == 1;
    if (is_one_part && one_pass) op.free_repetitions = kAny;  // one repetition after the other
    // With one pass there is nothing to alternate with: one chunk holds all repetitions. Half of
    // the largest number leaves room to add a chunk. With fewer than 4 repetitions, entering the
    // parts costs more than the caches save.
    op.chunk = one_pass ? std::numeric_limits<std::int64_t>::max() / 2
                        : std::max<std::int64_t>(
                              kChunkBytes / (std::min(std::abs(stride), lines) + body.size), 4);
  }

  // Returns the bytes of the cache lines that one repetition touches.
  static std::int64_t lines_of(const std::vector<StridedOp>& parts) {
    std::int64_t lines = 0;
    for (const auto& part : parts) {
      std::int64_t runs = 1;
      for (int height = 0; height < part.top(); ++height) runs *= part.level(height).count;
      lines += runs * (part.run / kLineBytes + 1) * kLineBytes;
    }
    return lines;
  }

  // Moves the short runs among the parts to groups. Neighbours stay together, so that a group
  // writes to one cache line.
  static void group_short_runs(Op& op) {
    std::vector<StridedOp> others;
    for (auto& part : op.parts) {
      if (part.levels.size() > 1 || part.run >= 2 * Atom::kMaxBytes) {
        others.push_back(std::move(part));
        continue;
      }
      std::int64_t done = 0;
      for (auto bytes = Atom::kMaxBytes; bytes > 0; bytes /= 2)
        for (; part.run - done >= bytes; done += bytes) {
          if (op.groups.empty() || op.groups.back().size == AtomGroup::kMaxSize)
            op.groups.emplace_back();
          auto& group = op.groups.back();
          group.atoms[group.size++] = {part.displacement + done, part.packed_offset + done, bytes};
        }
    }
    for (auto& group : op.groups)
      std::stable_sort(group.atoms.begin(),
                       group.atoms.begin() + static_cast<std::ptrdiff_t>(group.size),
                       [](const Atom& a, const Atom& b) { return a.bytes > b.bytes; });
    op.parts = std::move(others);
  }

  // Holds the entries [begin, end) of an IndexedLoop. All their lengths are multiples of `grain`.
  struct Stretch {
    std::size_t begin, end;
    std::int64_t grain;
  };

  // Cuts a list where its lengths change for long, as in a struct of lists.
  static std::vector<Stretch> stretches_of(const IndexedLoop& l) {
    constexpr std::size_t kWindow = 32, kMost = 16;
    std::vector<Stretch> stretches;
    for (std::size_t begin = 0; begin < l.lengths.size(); begin += kWindow) {
      const auto end = std::min(begin + kWindow, l.lengths.size());
      std::int64_t grain = 0;
      for (auto i = begin; i < end; ++i) grain = std::gcd(grain, l.lengths[i]);
      if (!stretches.empty() && stretches.back().grain == grain)
        stretches.back().end = end;
      else
        stretches.push_back({begin, end, grain});
    }
    if (stretches.size() <= kMost) return stretches;
    std::int64_t grain = 0;
    for (const auto& stretch : stretches) grain = std::gcd(grain, stretch.grain);
    return {{0, l.lengths.size(), grain}};
  }

  void make_list(Op& op, const IndexedLoop& l) {
    const auto stretches = stretches_of(l);
    if (stretches.size() == 1) return make_stretch(op, l, stretches[0]);
    op.kind = Op::Kind::members;
    op.count = std::ssize(stretches);
    op.displacements.resize(stretches.size());  // all 0: displacements count from the list's begin
    std::int64_t end = 0;
    for (const auto& stretch : stretches) {
      Op child;
      make_stretch(child, l, stretch);
      op.ends.push_back(end += child.size);
      op.children.push_back(add(std::move(child)));
    }
  }

  // Compiles a stretch. Small runs become runs of one length: telling a few lengths apart costs
  // more than copying a few more runs.
  static void make_stretch(Op& op, const IndexedLoop& l, const Stretch& stretch) {
    constexpr std::int64_t kMaxBlocksPerRun = 4;  // the table grows by this factor at most
    const auto [begin, end, grain] = stretch;
    const auto runs = static_cast<std::int64_t>(end - begin);
    op.size = 0;
    for (auto i = begin; i < end; ++i) op.ends.push_back(op.size += l.lengths[i]);
    if (op.size / grain > kMaxBlocksPerRun * runs) {
      op.kind = Op::Kind::runs;
      op.count = runs;
      op.displacements.assign(l.displacements.begin() + static_cast<std::ptrdiff_t>(begin),
                              l.displacements.begin() + static_cast<std::ptrdiff_t>(end));
      return;
    }
    op.kind = Op::Kind::blocks;
    op.child_size = grain;
    op.count = op.size / grain;
    op.ends.clear();
    std::vector<std::int64_t> displacements;
    displacements.reserve(static_cast<std::size_t>(op.count));
    for (auto i = begin; i < end; ++i)
      for (std::int64_t at = 0; at < l.lengths[i]; at += grain)
        displacements.push_back(l.displacements[i] + at);
    take_displacements(op, displacements, true);
  }

  static void take_displacements(Op& op, const std::vector<std::int64_t>& displacements,
                                 bool is_of_blocks) {
    using Near = std::numeric_limits<std::int32_t>;
    const auto [least, greatest] = std::minmax_element(displacements.begin(), displacements.end());
    if (is_of_blocks && *least >= Near::min() && *greatest <= Near::max())
      op.near_displacements.assign(displacements.begin(), displacements.end());
    else
      op.displacements = displacements;
  }

  Program& program_;
};

template <class List>
std::uint64_t all_bits(const List& list) {
  std::uint64_t bits = 0;
  for (const auto value : list) bits |= static_cast<std::uint64_t>(std::int64_t{value});
  return bits;
}

template <class AnyProgram, class Function>
void for_each_op(AnyProgram& program, Function function) {
  function(program.root);
  for (auto& op : program.ops) function(op);
}

std::int64_t word_bytes_of(const Program& program) {
  constexpr std::uint64_t kMaxWord = 16;
  std::uint64_t alignment_bits =
      kMaxWord | all_bits(std::initializer_list<std::int64_t>{program.start, program.bounds.extent,
                                                              program.bounds.size});
  for_each_op(program, [&](const Op& op) {
    alignment_bits |= static_cast<std::uint64_t>(op.stride | op.child_size | op.strided.run);
    for (const auto& level : op.strided.levels)
      alignment_bits |= static_cast<std::uint64_t>(level.stride | level.packed_stride);
    alignment_bits |=
        all_bits(op.displacements) | all_bits(op.near_displacements) | all_bits(op.ends);
    // The rule's places within a bucket are multiples of op.stride or op.child_size.
    if (op.rule) alignment_bits |= static_cast<std::uint64_t>(op.rule->distance | op.rule->start);
  });
  return static_cast<std::int64_t>(alignment_bits & (~alignment_bits + 1));
}

// Returns the separate runs of a triangular type. Its lengths change: at most one run is as long as
// the distance to the next run.
std::int64_t separate_runs_of_triangle(const BucketRule& rule, std::int64_t unit) {
  const auto blocks = rule.nonempty();
  if (rule.distance % unit != 0) return blocks;
  const auto longer = rule.distance / unit - rule.first;
  const auto i = longer % rule.change == 0 ? longer / rule.change : -1;
  const bool joins = 0 <= i && i + 1 < rule.count && rule.length(i) > 0 && rule.length(i + 1) > 0;
  return joins ? blocks - 1 : blocks;
}

std::int64_t separate_runs_of(const Op& list) {
  if (list.rule && list.rule->ends == nullptr)
    return separate_runs_of_triangle(*list.rule, list.child_size);
  std::int64_t blocks = 0, end = 0, packed_end = 0;
  for (std::int64_t i = 0; i < list.count; ++i) {
    const auto begin = displacement_of(list, i);
    const auto length = end_of(list, i) - std::exchange(packed_end, end_of(list, i));
    if (length == 0) continue;  // an empty bucket
    if (blocks == 0 || begin != end) ++blocks;
    end = begin + length;
  }
  return blocks;
}

template <class T>
std::int64_t bytes_of(const std::vector<T>& table) {
  return static_cast<std::int64_t>(table.size() * sizeof(T));
}

std::int64_t bytes_of(const StridedOp& strided) {
  return bytes_of(strided.levels);
}

}  // namespace

std::int64_t detail::steps_without_overlap(std::int64_t run, const std::vector<LoopLevel>& levels) {
  const auto length = [](const LoopLevel& level) { return std::abs(level.stride); };
  auto inner = std::vector(levels.begin(), levels.end() - 1);
  std::sort(inner.begin(), inner.end(),
            [&](const auto& a, const auto& b) { return length(a) < length(b); });
  const auto last = length(levels.back());
  std::int64_t steps = kAny, span = run, shorter_span = run;
  for (const auto& level : inner) {
    if (length(level) < span) return 0;
    if (length(level) > last && last > 0)
      steps = std::min(steps, (length(level) - span) / last + 1);
    span += (level.count - 1) * length(level);
    if (length(level) <= last) shorter_span = span;
  }
  return last >= shorter_span ? steps : 1;
}

int detail::innermost_level(std::int64_t run, std::span<const LoopLevel> levels) {
  if (levels.size() < 2 || run >= kLineBytes) return 0;
  const auto nearest = std::min_element(
      levels.begin(), levels.end(),
      [](const auto& a, const auto& b) { return std::abs(a.stride) < std::abs(b.stride); });
  return std::abs(nearest->stride) < kLineBytes ? static_cast<int>(nearest - levels.begin()) : 0;
}

PackPlan::PackPlan(CanonicalForm form) {
  auto program = std::make_shared<Program>();
  program->start = form.start;
  program->bounds = form.bounds;
  Compiler(*program).compile_root(std::move(form));
  for_each_op(*program, [](Op& op) {
    if (is_list(op)) op.separate_runs = separate_runs_of(op);
  });
  program->word_bytes = word_bytes_of(*program);
  program_ = std::move(program);
}

std::int64_t PackPlan::metadata_bytes() const {
  std::int64_t bytes = 0;
  for_each_op(*program_, [&](const Op& op) {
    bytes += bytes_of(op.strided) + bytes_of(op.displacements) + bytes_of(op.near_displacements) +
             bytes_of(op.ends) + bytes_of(op.children);
    if (op.rule && op.rule->ends != nullptr) bytes += bytes_of(*op.rule->ends);
    bytes += bytes_of(op.groups);
    for (const auto& part : op.parts) bytes += bytes_of(part);
  });
  return bytes;
}

namespace {

std::string text_of(const StridedOp& op) {
  if (op.run == 0) return "nothing";
  if (op.levels.empty()) return "one run of " + std::to_string(op.run) + " bytes";
  const auto level_text = [](const LoopLevel& level) {
    return std::to_string(level.count) + " x " + std::to_string(level.stride) + " -> " +
           std::to_string(level.packed_stride);
  };
  std::string out = std::string(op.innermost_height > 0 ? "tiles" : "rows") + " of " +
                    std::to_string(op.run) + "-byte runs, loops from the inside " +
                    level_text(op.levels[0]);
  for (std::size_t i = 1; i < op.levels.size(); ++i) out += ", " + level_text(op.levels[i]);
  return out;
}

void append_text(const Program& program, const Op& op, const std::string& indent,
                 std::string& out) {
  const auto count = std::to_string(op.count);
  const auto child = [&](std::int32_t i) {
    append_text(program, program.ops[static_cast<std::size_t>(i)], indent + "  ", out);
  };
  out += indent;
  switch (op.kind) {
    case Op::Kind::strided:
      out += text_of(op.strided) + "\n";
      return;
    case Op::Kind::blocks:
      out += count + " blocks of " + std::to_string(op.child_size) + " bytes, displacements of " +
             (op.near_displacements.empty() ? "64" : "32") + " bits\n";
      return;
    case Op::Kind::runs:
      out += count +
             (op.rule ? std::string(" runs of a ") + op.rule->name() + " type of " : " runs of ") +
             std::to_string(op.size) + " bytes together\n";
      return;
    case Op::Kind::repeat:
    case Op::Kind::buckets:
      out += count +
             (op.rule ? std::string(" elements of a ") + op.rule->name() + " type, "
                      : " repetitions, ") +
             std::to_string(op.stride) + " bytes apart, of\n";
      if (op.chunk == 0) return child(op.children[0]);
      for (const auto& group : op.groups) {
        out += indent + "  atoms of";
        for (std::size_t i = 0; i < group.size; ++i)
          out += (i == 0 ? " " : ", ") + std::to_string(group.atoms[i].bytes);
        out += " bytes in one loop\n";
      }
      for (const auto& part : op.parts) out += indent + "  " + text_of(part) + "\n";
      return;
    case Op::Kind::each:
      out += "at each of " + count + " displacements\n";
      return child(op.children[0]);
    case Op::Kind::members:
      out += count + " members\n";
      for (const auto i : op.children) child(i);
      return;
  }
}

}  // namespace

std::string to_string(const PackPlan& plan) {
  const auto& program = plan.program();
  std::string out;
  append_text(program, program.root, "", out);
  const auto& root = program.root;
  const bool shown =
      root.chunk == 0 && !root.children.empty() && program.instance == root.children[0];
  if (program.instance >= 0 && !shown) {
    out += "one instance alone:\n";
    append_text(program, program.entry(1), "  ", out);
  }
  return out;
}

PackPlan make_plan(const TypeExpr& expr) {
  return PackPlan(canonicalize(translate(expr)));
}

Result<PackPlan> make_plan(MPI_Datatype handle) {
  auto tree = translate(handle);
  if (auto* reason = std::get_if<UnsupportedDatatype>(&tree)) return std::move(*reason);
  return PackPlan(canonicalize(std::get<TypeTree>(tree)));
}

}  // namespace halocline::dtype
