// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/disjoint.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "dtype/pack/block_list.hpp"

namespace halocline::dtype {

namespace {

constexpr auto kAnyNumber = std::numeric_limits<std::int64_t>::max();

// Calls visit(block) for the blocks of one instance in packed order, until it returns false.
// Returns true if it never did.
template <class Visit>
bool for_each_of_blocks(const PackPlan& plan, Visit&& visit) {
  constexpr std::size_t kAtOnce = 256;
  std::array<MemoryBlock, kAtOnce> blocks;
  std::int64_t position = 0;
  while (const auto got = list_blocks(plan, 1, position, blocks))
    for (const auto& block : std::span(blocks).first(got))
      if (!visit(block)) return false;
  return true;
}

enum class BlockOrder { ascending, none, overlapping };
// Compares each block with the one before it.
BlockOrder order_of_blocks(const PackPlan& plan) {
  auto out = BlockOrder::ascending;
  MemoryBlock last{std::numeric_limits<std::int64_t>::min(), 0};
  for_each_of_blocks(plan, [&](const MemoryBlock& block) {
    if (block.offset < last.offset + last.length)
      out = block.offset + block.length > last.offset ? BlockOrder::overlapping : BlockOrder::none;
    last = block;
    return out == BlockOrder::ascending;
  });
  return out;
}

// Sorts the blocks. Returns the least distance from the end of a block to the begin of the next one
// in memory. Negative if two blocks overlap; kAnyNumber for a single block.
std::int64_t least_gap(std::vector<MemoryBlock>& blocks) {
  std::sort(blocks.begin(), blocks.end(),
            [](const auto& a, const auto& b) { return a.offset < b.offset; });
  auto out = kAnyNumber;
  for (std::size_t i = 1; i < blocks.size(); ++i)
    out = std::min(out, blocks[i].offset - blocks[i - 1].offset - blocks[i - 1].length);
  return out;
}

// Moves each block, of at most `step` bytes, into [0, step) by a multiple of `step`. Cuts a block
// that reaches beyond `step`, and moves its rest to 0.
void fold(std::vector<MemoryBlock>& blocks, std::int64_t step) {
  const auto size = blocks.size();
  for (std::size_t i = 0; i < size; ++i) {
    auto& [offset, length] = blocks[i];
    offset = (offset % step + step) % step;
    if (const auto over = offset + length - step; over > 0) {
      length -= over;
      blocks.push_back({0, over});
    }
  }
}

// Tells if all bytes of one instance have different displacements modulo `period`. nullopt if that
// takes too much memory: a bit for each word of a period.
std::optional<bool> are_met_once(const PackPlan& plan, std::int64_t period) {
  constexpr std::int64_t kMostBits = std::int64_t{1} << 29, kSparse = 64;
  const auto word = plan.word_bytes(), words = period / word;
  if (words == 0 || words > kMostBits || words > kSparse * (plan.bounds().size / word))
    return std::nullopt;
  std::vector<bool> is_met(static_cast<std::size_t>(words));
  return for_each_of_blocks(plan, [&](const MemoryBlock& block) {
    auto at = (block.offset % period + period) % period / word;
    for (auto left = block.length / word; left > 0; --left, at = at + 1 == words ? 0 : at + 1) {
      if (is_met[static_cast<std::size_t>(at)]) return false;
      is_met[static_cast<std::size_t>(at)] = true;
    }
    return true;
  });
}

std::int64_t instances_by_blocks(const PackPlan& plan) {
  constexpr std::size_t kMost = std::size_t{1} << 21;
  const auto& bounds = plan.bounds();
  const auto step = std::abs(bounds.extent);
  const bool interleave = step < bounds.true_extent;
  const auto order = order_of_blocks(plan);
  if (order == BlockOrder::overlapping) return 0;
  if (order == BlockOrder::ascending && !interleave) return kAnyNumber;
  if (const auto once = are_met_once(plan, interleave ? step : bounds.true_extent)) {
    if (*once) return kAnyNumber;
    if (!interleave) return 0;
  }
  std::vector<MemoryBlock> blocks;
  std::int64_t longest = 0;
  const bool are_few = for_each_of_blocks(plan, [&](const MemoryBlock& block) {
    if (blocks.size() == kMost) return false;
    blocks.push_back(block);
    longest = std::max(longest, block.length);
    return true;
  });
  if (!are_few) return 0;
  const auto gap = least_gap(blocks);
  if (gap < 0) return 0;
  if (!interleave) return kAnyNumber;
  if (longest > step) return 1;
  // With at most this number of instances, no block moves as far as the next block.
  const auto most = gap == kAnyNumber ? kAnyNumber : gap / step + 1;
  fold(blocks, step);
  return least_gap(blocks) >= 0 ? kAnyNumber : most;
}

// Returns the number of instances that the strides prove free of overlaps. 0 for a plan that is not
// one nest of loops.
std::int64_t instances_by_strides(const detail::Op& root) {
  if (root.kind != detail::Op::Kind::strided || root.strided.levels.empty()) return 0;
  std::vector<LoopLevel> levels;
  for (int height = 0; height <= root.strided.top(); ++height)
    levels.push_back(root.strided.level(height));
  const auto steps = detail::steps_without_overlap(root.strided.run, levels);
  return steps == kAnyNumber ? kAnyNumber : steps / levels.back().count;
}

}  // namespace

std::int64_t disjoint_instances(const PackPlan& plan) {
  if (plan.bounds().size == 0) return kAnyNumber;
  // Strides may prove too little: instances may interleave without end and never meet.
  const auto most = instances_by_strides(plan.program().root);
  return most == kAnyNumber ? most : std::max(most, instances_by_blocks(plan));
}

}  // namespace halocline::dtype
