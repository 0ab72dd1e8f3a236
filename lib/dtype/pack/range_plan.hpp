// SPDX-License-Identifier: BSD-3-Clause
// Makes a range of a packed stream a plan of its own.
//
// Best peer: peers pack a part of a message on a device only as rows or whole instances. Here a
// part may begin and end at any byte and is still one launch.
#pragma once

#include <cstdint>
#include <optional>

#include "dtype/pack/fused_plan.hpp"

namespace halocline::dtype {

/// Returns a plan that packs the bytes [first, last) of the packed stream of `count` instances.
///
/// The instances are at `buffer`; the bytes are packed from offset 0 on. It lets packers that take
/// whole plans do what Segment does on the host. Types that are strided as a whole take at most 2 *
/// levels + 1 jobs. Ranges of whole instances take one job. All other ranges return nullopt.
/// O(levels).
std::optional<FusedPlan> range_plan(const PackPlan& plan, void* buffer, std::int64_t count,
                                    std::int64_t first, std::int64_t last);

/// Tells if range_plan() returns a plan for every range.
bool has_range_plans(const PackPlan& plan, std::int64_t count);

}  // namespace halocline::dtype
