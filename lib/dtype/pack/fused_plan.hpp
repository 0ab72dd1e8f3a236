// SPDX-License-Identifier: BSD-3-Clause
// Compiles many packs into one plan.
//
// Best peer: [PEA21] and GHEX pack region by region, with a call or a kernel for each. Here the
// regions of all fields are one plan, executed in one pass or in one parallel region.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "dtype/pack/pack_plan.hpp"

namespace halocline::dtype {

/// Describes `count` instances at `buffer`, which belongs to the user. Only unpack writes to it.
struct PackJob {
  PackPlan plan;
  void* buffer;
  std::int64_t count;
  /// Offset of the packed bytes in the packed buffer. By default they follow those of the job
  /// before.
  std::optional<std::int64_t> packed_offset = std::nullopt;
};

/// Holds the jobs of many datatypes, buffers and counts as one plan. Immutable; copies share it,
/// also between threads. Jobs without data are left out.
class FusedPlan {
 public:
  /// Compiles the jobs. O(jobs).
  explicit FusedPlan(const std::vector<PackJob>& jobs = {});

  /// Returns the bytes that all jobs together pack.
  std::int64_t packed_bytes() const { return jobs().empty() ? 0 : jobs().back().end; }

  struct Job {
    PackPlan plan;
    void* buffer;
    std::int64_t count;
    std::int64_t packed_offset;
    std::int64_t end;  ///< packed bytes of all jobs up to and including this job
    std::int64_t bytes() const { return plan.packed_bytes(count); }
  };
  const std::vector<Job>& jobs() const { return data_->jobs; }
  const detail::Attachment& attachment() const { return data_->attachment; }

 private:
  struct Data {
    std::vector<Job> jobs;
    detail::Attachment attachment;  // tables that a device needs
  };
  std::shared_ptr<const Data> data_;
};

}  // namespace halocline::dtype
