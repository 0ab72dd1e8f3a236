// SPDX-License-Identifier: BSD-3-Clause
// A stretch of a packed stream as a plan of its own.
//
// Best peer: no peer packs a part of a message on a device but as rows or whole instances; here a
// part may begin and end at any byte and is still one launch.
#pragma once

#include <cstdint>
#include <optional>

#include "dtype/pack/fused_plan.hpp"

namespace halocline::dtype {

/// The bytes [first, last) of the packed stream of `count` instances at `buffer`, as a plan that
/// packs them from offset 0 on: what Segment does on the host, for packers that take whole plans.
/// Of types that are strided as a whole, which take at most 2 * levels + 1 jobs; nullopt for others
/// unless the range is one of whole instances. O(levels).
std::optional<FusedPlan> range_plan(const PackPlan& plan, void* buffer, std::int64_t count,
                                    std::int64_t first, std::int64_t last);

/// Whether range_plan() has one for every range.
bool has_range_plans(const PackPlan& plan, std::int64_t count);

}  // namespace halocline::dtype
