// SPDX-License-Identifier: BSD-3-Clause
// Parses a plan apart from the action [RMG03 sections 2.2, 2.3]: finds the loops that hold a range
// of the packed stream. Internal to the pack back ends.
//
// Best peer: the dataloops of MPICH keep a stack of cursors between calls and seek linearly in
// index lists. Here any position is found by division and binary search.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dtype/pack/pack_plan.hpp"
#include "support/contract.hpp"

namespace halocline::dtype::detail {

/// Cuts the bytes [first, last) of a strided loop into whole boxes and pieces of runs.
///
/// Visits them in packed order, at most two of each per level. The level of the highest height may
/// take more steps than its count.
///
/// box(displacement, packed offset, height, count): `count` steps of the level `height`, each with
/// all levels below it in full. Height -1 means a single run.
///
/// piece(displacement, packed offset, bytes): consecutive bytes, fewer than a run. For a loop
/// without levels, it is the whole range.
///
/// \return false as soon as box() or piece() returns false, else true.
template <class Box, class Piece>
bool cut(const StridedOp& op, std::int64_t first, std::int64_t last, Box box, Piece piece) {
  if (op.levels.empty()) return first >= last || piece(first, first, last - first);
  const auto top = op.top();
  while (first < last) {
    // The step of each level that holds position `first`, from the outside inwards.
    std::int64_t displacement = 0, rest = first;
    int height = -1;          // the outermost level that starts here
    std::int64_t inside = 0;  // steps into that level
    for (int k = top; k >= 0; --k) {
      const auto& level = op.level(k);
      const auto step = rest / level.packed_stride;
      rest -= step * level.packed_stride;
      displacement += step * level.stride;
      if (rest == 0 && height < 0 && last - first >= level.packed_stride) {
        height = k;
        inside = step;
        break;
      }
    }
    if (height >= 0) {
      const auto& level = op.level(height);
      auto count = (last - first) / level.packed_stride;
      if (height < top) count = std::min(count, level.count - inside);
      if (!box(displacement, first, height, count)) return false;
      first += count * level.packed_stride;
      continue;
    }
    const auto bytes = std::min(op.run - rest, last - first);
    const bool whole = bytes == op.run;
    if (!(whole ? box(displacement, first, -1, 1) : piece(displacement + rest, first, bytes)))
      return false;
    first += bytes;
  }
  return true;
}

/// Cuts the bytes [first, last) of a list of blocks or runs into whole entries and pieces of
/// entries.
///
/// whole(i, j, packed offset): the entries [i, j) in full. piece(displacement, packed offset,
/// bytes): consecutive bytes, fewer than an entry.
///
/// \return false as soon as whole() or piece() returns false, else true.
template <class Whole, class Piece>
bool cut_list(const Op& op, std::int64_t first, std::int64_t last, Whole whole, Piece piece) {
  const auto begin_of = [&](std::int64_t i) { return i == 0 ? 0 : end_of(op, i - 1); };
  // Returns the entry that holds a position.
  const auto entry_at = [&](std::int64_t position) {
    if (op.kind == Op::Kind::blocks) return position / op.child_size;
    if (op.rule) return op.rule->bucket_of(position / op.child_size);
    return std::upper_bound(op.ends.begin(), op.ends.end(), position) - op.ends.begin();
  };
  while (first < last) {
    const auto i = entry_at(first);
    const auto begin = begin_of(i);
    if (first == begin && end_of(op, i) <= last) {
      const auto j = last == op.size ? op.count : entry_at(last);
      if (!whole(i, j, first)) return false;
      first = begin_of(j);
    } else {
      const auto bytes = std::min(end_of(op, i), last) - first;
      if (!piece(displacement_of(op, i) + first - begin, first, bytes)) return false;
      first += bytes;
    }
  }
  return true;
}

/// Visits, in packed order, the loops that hold the bytes [first, last) of `count` instances.
///
///     visitor.strided(op, displacement, packed offset, first, last)    a range of a strided op
///     visitor.listed(op, displacement, packed offset, first, last)     a range of blocks or runs
///     visitor.repeated(op, displacement, packed offset, repetitions)   whole repetitions of parts
///
/// Displacements count from the buffer argument, and packed offsets from the begin of the stream.
/// Ranges count from the packed offset. Each function returns true to go on.
///
/// `repeated` is optional. A visitor that has it also has takes_parts(op, repetitions): true calls
/// repeated() for all of them, false visits the child. Without it, every repetition is a visit of
/// the child.
///
/// No recursion; seeks in O(depth + log blocks).
template <class Visitor>
void walk(const Program& program, std::int64_t count, std::int64_t first, std::int64_t last,
          const Visitor& visitor) {
  if (first >= last) return;
  const auto& root = program.entry(count);
  struct Frame {
    const Op* op;
    std::int64_t displacement, packed;  // of this op
    std::int64_t next;                  // index of the child to visit
    std::int64_t bucket;                // Kind::buckets: the bucket that holds `next`
  };
  // The depth stays below 128. An op has at least twice the bytes of the op two levels below it,
  // and no size reaches 2^61 bytes. Loops have two steps or more, except for the root. A struct in
  // a struct is the rest of a list that was cut: at most an eighth of the list.
  constexpr int kMaxDepth = 128;
  Frame stack[kMaxDepth];
  int depth = 0;

  // Enters an op, or visits it if it is a leaf.
  const auto enter = [&](const Op& op, std::int64_t displacement, std::int64_t packed) {
    const auto begin = std::max<std::int64_t>(first - packed, 0);
    switch (op.kind) {
      case Op::Kind::strided:
      case Op::Kind::blocks:
      case Op::Kind::runs: {
        const auto end = std::min(&op == &root ? op.size * count : op.size, last - packed);
        return op.kind == Op::Kind::strided ? visitor.strided(op, displacement, packed, begin, end)
                                            : visitor.listed(op, displacement, packed, begin, end);
      }
      case Op::Kind::repeat:
      case Op::Kind::each:
      case Op::Kind::buckets:
        HALOCLINE_EXPECT(depth < kMaxDepth);
        stack[depth++] = {&op, displacement, packed, begin / op.child_size,
                          op.rule ? op.rule->bucket_of(begin / op.child_size) : 0};
        return true;
      case Op::Kind::members:
        HALOCLINE_EXPECT(depth < kMaxDepth);
        stack[depth++] = {&op, displacement, packed,
                          std::upper_bound(op.ends.begin(), op.ends.end(), begin) - op.ends.begin(),
                          0};
        return true;
    }
    return false;
  };

  if (!enter(root, program.start, 0)) return;
  while (depth > 0) {
    auto& frame = stack[depth - 1];
    const auto& op = *frame.op;
    const auto i = frame.next;
    const bool is_members = op.kind == Op::Kind::members;
    const auto packed =
        frame.packed +
        (is_members ? (i == 0 ? 0 : op.ends[static_cast<std::size_t>(i - 1)]) : i * op.child_size);
    const auto children = &op == &root ? op.count * count : op.count;
    if (i == children || packed >= last) {
      --depth;
      continue;
    }
    auto displacement = frame.displacement;
    auto together = children - i;  // children that follow at one distance
    if (op.kind == Op::Kind::repeat) {
      displacement += i * op.stride;
    } else if (op.kind == Op::Kind::buckets) {
      while (op.rule->end(frame.bucket) <= i) ++frame.bucket;
      displacement +=
          op.rule->displacement(frame.bucket) + (i - op.rule->begin(frame.bucket)) * op.stride;
      together = op.rule->end(frame.bucket) - i;
    } else {
      displacement += op.displacements[static_cast<std::size_t>(i)];
    }
    if constexpr (requires { &Visitor::repeated; }) {
      if (op.chunk > 0 && packed >= first && last - packed >= op.child_size) {
        const auto whole = std::min(together, (last - packed) / op.child_size);
        if (visitor.takes_parts(op, whole)) {
          frame.next += whole;
          if (!visitor.repeated(op, displacement, packed, whole)) return;
          continue;
        }
      }
    }
    ++frame.next;
    const auto child = op.children[is_members ? static_cast<std::size_t>(i) : 0];
    if (!enter(program.ops[static_cast<std::size_t>(child)], displacement, packed)) return;
  }
}

}  // namespace halocline::dtype::detail
