// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/range_plan.hpp"

#include <utility>
#include <vector>

#include "dtype/pack/walk.hpp"
#include "support/contract.hpp"

namespace halocline::dtype {

namespace {

using detail::Op;

PackPlan plan_of(std::int64_t displacement, StridedLoop loop, std::int64_t bytes) {
  return PackPlan({.start = displacement,
                   .root = {bytes, std::move(loop)},
                   .bounds = {.size = bytes, .lb = 0, .extent = bytes}});
}

}  // namespace

bool has_range_plans(const PackPlan& plan, std::int64_t count) {
  return plan.program().entry(count).kind == Op::Kind::strided;
}

std::optional<FusedPlan> range_plan(const PackPlan& plan, void* buffer, std::int64_t count,
                                    std::int64_t first, std::int64_t last) {
  HALOCLINE_EXPECT(0 <= first && first <= last && last <= plan.packed_bytes(count));
  if (first == last) return FusedPlan();
  const auto& bounds = plan.bounds();
  if (first % bounds.size == 0 && last % bounds.size == 0) {
    const auto skipped = static_cast<std::uintptr_t>(first / bounds.size * bounds.extent);
    auto* const from = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(buffer) + skipped);
    return FusedPlan({{plan, from, (last - first) / bounds.size}});
  }
  if (!has_range_plans(plan, count)) return std::nullopt;
  const auto& program = plan.program();
  const auto& op = program.entry(count).strided;
  std::vector<PackJob> jobs;
  const auto add = [&](std::int64_t inside, StridedLoop loop, std::int64_t bytes) {
    jobs.push_back({plan_of(program.start + inside, std::move(loop), bytes), buffer, 1});
    return true;
  };
  detail::cut(
      op, first, last,
      [&](std::int64_t inside, std::int64_t, int height, std::int64_t steps) {
        StridedLoop loop{op.run, {}};
        auto bytes = op.run;
        for (int k = 0; k <= height; ++k) {
          auto level = op.level(k);
          if (k == height) level.count = steps;
          if (level.count > 1) loop.levels.push_back(level);
          bytes = level.count * level.packed_stride;
        }
        return add(inside, std::move(loop), bytes);
      },
      [&](std::int64_t inside, std::int64_t, std::int64_t bytes) {
        return add(inside, {bytes, {}}, bytes);
      });
  return FusedPlan(jobs);
}

}  // namespace halocline::dtype
