// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/device/device_plan.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace halocline::dtype::device {

namespace {

using detail::Op;
using detail::StridedOp;

template <class List>
std::uint64_t all_bits(const List& list) {
  std::uint64_t bits = 0;
  for (const auto value : list) bits |= static_cast<std::uint64_t>(std::int64_t{value});
  return bits;
}

}  // namespace

// Walks from the root to the leaves, and takes the loops around each leaf along.
class Flattener {
 public:
  Flattener(const detail::Program& program, DevicePlan& plan) : program_(program), plan_(plan) {}

  void flatten() {
    const auto& root = program_.root;
    if (root.size == 0) return;
    if (root.kind == Op::Kind::strided && root.strided.levels.empty()) {
      const auto run = root.strided.run;
      plan_.leaves_.push_back(
          {program_.start, 0, run, {{.count = 1, .stride = run, .packed_stride = run}}});
      return;
    }
    flatten(root, program_.start, 0, {});
  }

 private:
  using Loops = std::vector<Loop>;

  void flatten(const Op& op, std::int64_t displacement, std::int64_t packed_offset,
               const Loops& outer) {
    const auto child = [&](std::size_t i) -> const Op& {
      return program_.ops[static_cast<std::size_t>(op.children[i])];
    };
    switch (op.kind) {
      case Op::Kind::strided: {
        Loops loops;
        for (int height = 0; height <= op.strided.top(); ++height) {
          const auto& level = op.strided.level(height);
          loops.push_back(
              {.count = level.count, .stride = level.stride, .packed_stride = level.packed_stride});
        }
        add_leaf(displacement, packed_offset, op.strided.run, std::move(loops), outer);
        return;
      }
      case Op::Kind::blocks:
        add_leaf(displacement, packed_offset, op.child_size, {list(op)}, outer);
        return;
      case Op::Kind::runs:
        add_runs(op, displacement, packed_offset, outer);
        return;
      case Op::Kind::repeat:
        if (op.count == 1 && &op != &program_.root)
          return flatten(child(0), displacement, packed_offset, outer);
        flatten(child(0), displacement, packed_offset,
                within({.count = op.count, .stride = op.stride, .packed_stride = op.child_size},
                       outer));
        return;
      case Op::Kind::each:
        flatten(child(0), displacement, packed_offset, within(list(op), outer));
        return;
      case Op::Kind::buckets:
        flatten(child(0), displacement, packed_offset,
                within(by_rule(op, op.count, op.stride), outer));
        return;
      case Op::Kind::members:
        for (std::size_t i = 0; i < op.children.size(); ++i)
          flatten(child(i), displacement + op.displacements[i],
                  packed_offset + (i == 0 ? 0 : op.ends[i - 1]), outer);
        return;
    }
  }

  static Loops within(Loop inner, const Loops& outer) {
    Loops loops{inner};
    loops.insert(loops.end(), outer.begin(), outer.end());
    return loops;
  }

  void add_leaf(std::int64_t displacement, std::int64_t packed_offset, std::int64_t run,
                Loops loops, const Loops& outer) {
    loops.insert(loops.end(), outer.begin(), outer.end());
    plan_.leaves_.push_back({displacement, packed_offset, run, std::move(loops)});
  }

  // Makes a few runs of changing lengths a leaf each. More runs become elements, whose size divides
  // all lengths. Each element looks its run up.
  void add_runs(const Op& op, std::int64_t displacement, std::int64_t packed_offset,
                const Loops& outer) {
    if (op.rule) {
      const auto elements = op.size / op.child_size;
      return add_leaf(displacement, packed_offset, op.child_size,
                      {by_rule(op, elements, op.child_size)}, outer);
    }
    if (op.count <= DevicePlan::kMaxSplit) {
      std::int64_t begin = 0;
      for (std::int64_t i = 0; i < op.count; begin = end_of(op, i++))
        add_leaf(displacement + displacement_of(op, i), packed_offset + begin,
                 end_of(op, i) - begin, {}, outer);
      return;
    }
    std::int64_t unit = 0;
    for (const auto end : op.ends) unit = std::gcd(unit, end);
    auto ends = op.ends;
    for (auto& end : ends) end /= unit;
    add_leaf(displacement, packed_offset, unit,
             {{.kind = LoopKind::runs,
               .count = op.size / unit,
               .stride = unit,
               .packed_stride = unit,
               .entries = op.count,
               .table = append(op.displacements),
               .ends = append(ends),
               .alignment_bits = all_bits(op.displacements)}},
             outer);
  }

  Loop list(const Op& op) {
    const bool near = !op.near_displacements.empty();
    return {.kind = near ? LoopKind::near_table : LoopKind::far_table,
            .count = op.count,
            .packed_stride = op.child_size,
            .table = near ? append(op.near_displacements) : append(op.displacements),
            .alignment_bits = all_bits(op.displacements) | all_bits(op.near_displacements)};
  }

  // Returns the loop over the elements of an op with a rule, `stride` bytes apart in their buckets.
  Loop by_rule(const Op& op, std::int64_t elements, std::int64_t stride) {
    const auto& rule = *op.rule;
    plan_.rules_.push_back(rule);
    return {.kind = LoopKind::rule,
            .count = elements,
            .stride = stride,
            .packed_stride = op.child_size,
            .entries = rule.count,
            .ends = rule.ends ? append(*rule.ends) : -1,
            .rule = static_cast<std::int32_t>(plan_.rules_.size() - 1),
            .alignment_bits = all_bits(std::initializer_list<std::int64_t>{
                rule.start, rule.distance, rule.own, rule.before})};
  }

  // Returns the byte offset of the appended table.
  template <class T>
  std::int64_t append(const std::vector<T>& table) {
    auto& all = plan_.tables_;
    const auto begin = all.size();
    const auto bytes = table.size() * sizeof(T);
    all.resize(begin + (bytes + sizeof(std::int64_t) - 1) / sizeof(std::int64_t));
    if (bytes > 0) std::memcpy(all.data() + begin, table.data(), bytes);
    return static_cast<std::int64_t>(begin * sizeof(std::int64_t));
  }

  const detail::Program& program_;
  DevicePlan& plan_;
};

DevicePlan::DevicePlan(const PackPlan& plan) {
  Flattener(plan.program(), *this).flatten();
}

DevicePlan::DevicePlan(const detail::CopyProgram& program) {
  const auto add = [&](detail::Address source, detail::Address destination, std::int64_t run) {
    leaves_.push_back(
        {static_cast<std::int64_t>(source), static_cast<std::int64_t>(destination), run, {}});
    return &leaves_.back().loops;
  };
  for (const auto& nest : program.nests) {
    auto* loops = add(nest.source, nest.destination, nest.run);
    for (const auto& level : nest.levels)
      loops->push_back(
          {.count = level.count, .stride = level.stride, .packed_stride = level.packed_stride});
    // Packed order: make_table() chooses tiles of its own.
    std::sort(loops->begin(), loops->end(),
              [](const Loop& a, const Loop& b) { return a.packed_stride < b.packed_stride; });
  }
  for (const auto& step : program.steps) {
    if (step.kind != detail::CopyStep::Kind::pieces) continue;
    std::int64_t begin = 0;
    for (auto i = step.first; i < step.last; ++i) {
      const auto& piece = program.pieces[i];
      const auto run = piece.end - std::exchange(begin, piece.end);
      *add(piece.source, piece.destination,
           run) = {{.count = 1, .stride = run, .packed_stride = run}};
    }
  }
}

}  // namespace halocline::dtype::device
