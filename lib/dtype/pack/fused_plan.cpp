// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/fused_plan.hpp"

#include <utility>

namespace halocline::dtype {

FusedPlan::FusedPlan(const std::vector<PackJob>& jobs) {
  auto data = std::make_shared<Data>();
  std::int64_t next = 0, end = 0;
  for (const auto& job : jobs) {
    const auto bytes = job.plan.packed_bytes(job.count);
    const auto offset = job.packed_offset.value_or(next);
    next = offset + bytes;
    if (bytes > 0) data->jobs.push_back({job.plan, job.buffer, job.count, offset, end += bytes});
  }
  data_ = std::move(data);
}

}  // namespace halocline::dtype
