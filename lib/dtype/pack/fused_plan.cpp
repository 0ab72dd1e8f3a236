// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/fused_plan.hpp"

namespace halocline::dtype {

FusedPlan::FusedPlan(const std::vector<PackJob>& jobs) {
  std::int64_t next = 0;
  for (const auto& job : jobs) {
    const auto bytes = job.plan.packed_bytes(job.count);
    const auto offset = job.packed_offset.value_or(next);
    next = offset + bytes;
    if (bytes > 0)
      jobs_.push_back({job.plan, job.buffer, job.count, offset, packed_bytes() + bytes});
  }
}

}  // namespace halocline::dtype
