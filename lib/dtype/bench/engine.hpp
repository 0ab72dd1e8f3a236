// SPDX-License-Identifier: BSD-3-Clause
// Makes the plans of the benchmarks and calls our packer. This is the only place to change for
// other options, or to switch an optimisation off.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "dtype/pack/fused_plan.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "dtype/pack/host/segment.hpp"
#include "dtype/pack/kokkos/kokkos_packer.hpp"
#include "dtype/pack/pack_plan.hpp"
#include "harness.hpp"
#include "support/error.hpp"

namespace halocline::dtype::bench {

inline constexpr std::int64_t kSegmentBytes = 64 * 1024;
inline constexpr std::int64_t kLookahead = 4 * 1024 * 1024;

/// Describes a part of a case, ready for use. `count` instances begin `offset` bytes into the
/// memory. They are packed to `bytes` bytes, `position` bytes into the stream.
struct Job {
  MPI_Datatype handle;
  std::int64_t count, offset, bytes, position;
  TypeExprPtr type;  ///< expression of the handle, for Mode::by_rule
};

struct PlannedJob {
  PackPlan plan;
  Job job;
};

inline Result<PackPlan> plan_of(MPI_Datatype handle) {
  return make_plan(handle);
}

using ThreadsPacker = KokkosPacker<Kokkos::DefaultHostExecutionSpace>;

/// Returns the number of threads that share one job of `bytes` bytes.
inline std::int64_t threads_of(std::int64_t bytes) {
  return std::clamp<std::int64_t>(bytes / ThreadsPacker::kLeastShare, 1,
                                  Kokkos::DefaultHostExecutionSpace().concurrency());
}

template <class Packer>
Method pack_whole(const std::vector<PlannedJob>& all, Packer packer) {
  return {batch([all, packer](std::byte* memory, std::byte* packed) {
            for (const auto& [plan, job] : all)
              packer.pack(plan, memory + job.offset, job.count, packed + job.position);
          }),
          batch([all, packer](std::byte* memory, std::byte* packed) {
            for (const auto& [plan, job] : all)
              packer.unpack(plan, packed + job.position, memory + job.offset, job.count);
          })};
}

// Packs in segments that are made beforehand, as in a library that sends in pieces. Each call packs
// the whole stream again.
inline Method pack_in_segments(const std::vector<PlannedJob>& all, std::byte* memory) {
  const auto segments = std::make_shared<std::deque<Segment>>();
  for (const auto& [plan, job] : all)
    segments->emplace_back(plan, memory + job.offset, job.count, kLookahead);
  const auto in_segments = [&segments](auto step) {
    return batch([segments, step](std::byte*, std::byte* packed) {
      for (auto& segment : *segments) {
        segment.seek(0);
        while (!segment.done()) packed += step(segment, packed);
      }
    });
  };
  return {in_segments([](Segment& segment, std::byte* packed) {
            return segment.pack(packed, kSegmentBytes);
          }),
          in_segments([](Segment& segment, const std::byte* packed) {
            return segment.unpack(packed, kSegmentBytes);
          })};
}

inline Method pack_fused(const std::vector<PlannedJob>& all, std::byte* memory) {
  std::vector<PackJob> jobs;
  for (const auto& [plan, job] : all) jobs.push_back({plan, memory + job.offset, job.count});
  const FusedPlan fused(jobs);
  return {batch([fused](std::byte*, std::byte* packed) { HostPacker().pack(fused, packed); }),
          batch([fused](std::byte*, std::byte* packed) { HostPacker().unpack(fused, packed); })};
}

/// Returns our pack and unpack of all jobs. Segments and a fused plan are bound to `memory`.
inline Result<Method> ours(const std::vector<Job>& jobs, Mode mode, std::byte* memory) {
  std::vector<PlannedJob> all;
  for (const auto& job : jobs) {
    auto plan =
        mode == Mode::by_rule ? Result<PackPlan>(make_plan(*job.type)) : plan_of(job.handle);
    if (auto* reason = std::get_if<UnsupportedDatatype>(&plan)) return std::move(*reason);
    all.push_back({std::get<PackPlan>(std::move(plan)), job});
  }
  if (mode == Mode::segments) return pack_in_segments(all, memory);
  if (mode == Mode::fused) return pack_fused(all, memory);
  if (mode == Mode::threads) return pack_whole(all, ThreadsPacker());
  return pack_whole(all, HostPacker());
}

}  // namespace halocline::dtype::bench
