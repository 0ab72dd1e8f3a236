// SPDX-License-Identifier: BSD-3-Clause
// Executes parts of a CopyPlan on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "dtype/pack/copy_plan.hpp"
#include "dtype/pack/host/nest.hpp"

namespace halocline::dtype::host {

/// Says how the host copies the nests of a step: a unit of each in turn, and threads share units.
///
/// A unit is `chunk` steps of levels[height], each with all levels inside of it. The last unit of a
/// loop may have fewer steps.
struct StepUnits {
  int height = 0;
  std::int64_t chunk = 1, units = 0;
  /// Copies a unit of nests that differ only in their begin, by `apart`. If it is null, `kernels`
  /// copy a unit, one nest after the other.
  TwinKernel twins = nullptr;
  TwinDistances apart;
  std::vector<NestKernel> kernels;
};

/// Returns the units of each step of a plan; those of steps without nests are empty. They are
/// chosen at the first use of the plan, O(nests).
const std::vector<StepUnits>& units_of(const CopyPlan& plan);

/// Copies the share [first, last) of a plan. Shares whose ranges make up [0, plan.bytes()) copy
/// each byte once.
///
/// The number of bytes in a share may differ from last - first. Its bytes depend on the plan.
/// O(bytes). Only the first use of a plan allocates.
void copy_share(const CopyPlan& plan, std::int64_t first, std::int64_t last);

}  // namespace halocline::dtype::host
