// SPDX-License-Identifier: BSD-3-Clause
// Many packs compiled into one.
//
// Best peer: [PEA21] and GHEX pack region by region, with a call or a kernel for each; here the
// regions of all fields are one plan, executed in one pass or in one parallel region.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "dtype/pack/pack_plan.hpp"

namespace halocline::dtype {

/// `count` instances at `buffer`, which belongs to the user and is written to by unpack alone.
struct PackJob {
  PackPlan plan;
  void* buffer;
  std::int64_t count;
  /// Where the packed bytes begin in the packed buffer; behind those of the job before if not
  /// given.
  std::optional<std::int64_t> packed_offset = std::nullopt;
};

/// The jobs of many datatypes, buffers and counts as one. Immutable; copies share it, also between
/// threads. Jobs without data are left out.
class FusedPlan {
 public:
  /// O(jobs).
  explicit FusedPlan(const std::vector<PackJob>& jobs = {});

  /// Bytes that all jobs together pack.
  std::int64_t packed_bytes() const { return jobs().empty() ? 0 : jobs().back().end; }

  struct Job {
    PackPlan plan;
    void* buffer;
    std::int64_t count;
    std::int64_t packed_offset;
    std::int64_t end;  ///< packed bytes of the jobs up to and with this one
    std::int64_t bytes() const { return plan.packed_bytes(count); }
  };
  const std::vector<Job>& jobs() const { return data_->jobs; }
  const detail::Attachment& attachment() const { return data_->attachment; }

 private:
  struct Data {
    std::vector<Job> jobs;
    detail::Attachment attachment;  // what a device needs
  };
  std::shared_ptr<const Data> data_;
};

}  // namespace halocline::dtype
