// SPDX-License-Identifier: BSD-3-Clause
// The action of a CopyPlan.
#pragma once

#include <cstdint>

#include "dtype/pack/copy_plan.hpp"

namespace halocline::dtype::host {

/// Copies a share of what the plan copies: shares whose ranges [first, last) make up [0,
/// plan.bytes()) copy each byte once. Neither is a share as many bytes as its range nor are those
/// the same bytes for other plans. No allocation; O(bytes).
void copy_share(const CopyPlan& plan, std::int64_t first, std::int64_t last);

}  // namespace halocline::dtype::host
