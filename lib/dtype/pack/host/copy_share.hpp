// SPDX-License-Identifier: BSD-3-Clause
// Executes parts of a CopyPlan on the host.
#pragma once

#include <cstdint>

#include "dtype/pack/copy_plan.hpp"

namespace halocline::dtype::host {

/// Copies the share [first, last) of a plan. Shares whose ranges make up [0, plan.bytes()) copy
/// each byte once.
///
/// The number of bytes in a share may differ from last - first. Its bytes depend on the plan. No
/// allocation; O(bytes).
void copy_share(const CopyPlan& plan, std::int64_t first, std::int64_t last);

}  // namespace halocline::dtype::host
