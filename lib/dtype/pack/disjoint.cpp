// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/disjoint.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <span>
#include <vector>

#include "dtype/pack/segment.hpp"

namespace halocline::dtype {

namespace {

constexpr auto kAny = std::numeric_limits<std::int64_t>::max();

// Calls visit(block) for the blocks of `count` instances in packed order, as long as it is true.
template <class Visit>
bool for_each_block(const PackPlan& plan, std::int64_t count, Visit&& visit) {
  constexpr std::size_t kAtOnce = 256;
  std::array<IoBlock, kAtOnce> blocks;
  Segment segment(plan, nullptr, count);
  while (const auto got = segment.blocks(blocks))
    for (const auto& block : std::span(blocks).first(got))
      if (!visit(block)) return false;
  return true;
}

// Tells if `count` instances are known to hold no byte twice.
bool are_disjoint(const PackPlan& plan, std::int64_t count) {
  constexpr std::size_t kMost = std::size_t{1} << 22;
  auto end = std::numeric_limits<std::int64_t>::min();
  const bool are_in_order = for_each_block(plan, count, [&](const IoBlock& block) {
    const bool is_behind = block.offset >= end;
    end = block.offset + block.length;
    return is_behind;
  });
  if (are_in_order) return true;
  std::vector<IoBlock> blocks;
  const bool are_few = for_each_block(plan, count, [&](const IoBlock& block) {
    blocks.push_back(block);
    return blocks.size() <= kMost;
  });
  if (!are_few) return false;
  std::sort(blocks.begin(), blocks.end(),
            [](const auto& a, const auto& b) { return a.offset < b.offset; });
  return std::adjacent_find(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) {
           return b.offset < a.offset + a.length;
         }) == blocks.end();
}

// The same as far as the strides of a plan tell that is one nest of loops, else 0.
std::int64_t instances_by_strides(const detail::Op& root) {
  if (root.kind != detail::Op::Kind::strided || root.strided.levels.empty()) return 0;
  std::vector<LoopLevel> levels;
  for (int rank = 0; rank <= root.strided.top(); ++rank) levels.push_back(root.strided.level(rank));
  const auto steps = detail::steps_without_overlap(root.strided.run, levels);
  return steps == kAny ? kAny : steps / levels.back().count;
}

}  // namespace

std::int64_t disjoint_instances(const PackPlan& plan, std::int64_t wanted) {
  const auto& bounds = plan.bounds();
  if (bounds.size == 0) return kAny;
  if (const auto most = instances_by_strides(plan.program().root); most >= wanted) return most;
  if (std::abs(bounds.extent) >= bounds.true_extent) return are_disjoint(plan, 1) ? kAny : 0;
  return are_disjoint(plan, wanted) ? wanted : 0;
}

}  // namespace halocline::dtype
