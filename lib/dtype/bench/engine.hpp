// SPDX-License-Identifier: BSD-3-Clause
// The one place where the benchmarks make plans and call our packer: what is to be measured with
// other options, or with an optimisation switched off, changes here.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "dtype/pack/host/host_packer.hpp"
#include "dtype/pack/pack_plan.hpp"
#include "dtype/support/error.hpp"
#include "harness.hpp"

// Segments and fused plans are measured as soon as the library has them.
#if __has_include("dtype/pack/segment.hpp")
#include "dtype/pack/segment.hpp"
#define HALOCLINE_BENCH_SEGMENTS
#endif
#if __has_include("dtype/pack/fused_plan.hpp")
#include "dtype/pack/fused_plan.hpp"
#define HALOCLINE_BENCH_FUSED
#endif

namespace halocline::dtype::bench {

inline constexpr std::int64_t kSegmentBytes = 64 * 1024;

/// A part of a case, ready for use: `count` instances `offset` bytes into the memory, packed to
/// `bytes` bytes `position` bytes into the stream.
struct Job {
  MPI_Datatype handle;
  std::int64_t count, offset, bytes, position;
};

struct PlannedJob {
  PackPlan plan;
  Job job;
};

inline Result<PackPlan> plan_of(MPI_Datatype handle) {
  return make_plan(handle);
}

inline Result<Method> pack_whole(std::vector<PlannedJob> all) {
  return Method{batch([all](std::byte* memory, std::byte* packed) {
                  for (const auto& [plan, job] : all)
                    HostPacker().pack(plan, memory + job.offset, job.count, packed + job.position);
                }),
                batch([all](std::byte* memory, std::byte* packed) {
                  for (const auto& [plan, job] : all)
                    HostPacker().unpack(plan, packed + job.position, memory + job.offset,
                                        job.count);
                })};
}

inline Result<Method> pack_in_segments([[maybe_unused]] std::vector<PlannedJob> all) {
#ifdef HALOCLINE_BENCH_SEGMENTS
  const auto in_segments = [all](auto step) {
    return batch([all, step](std::byte* memory, std::byte* packed) {
      for (const auto& [plan, job] : all) {
        Segment segment(plan, memory + job.offset, job.count);
        for (std::int64_t at = 0; at < job.bytes;)
          at += step(segment, packed + job.position + at, std::min(kSegmentBytes, job.bytes - at));
      }
    });
  };
  return Method{in_segments([](Segment& segment, std::byte* packed, std::int64_t bytes) {
                  return segment.pack(packed, bytes);
                }),
                in_segments([](Segment& segment, const std::byte* packed, std::int64_t bytes) {
                  return segment.unpack(packed, bytes);
                })};
#else
  return UnsupportedDatatype("no segments in this version");
#endif
}

inline Result<Method> pack_fused([[maybe_unused]] std::vector<PlannedJob> all,
                                 [[maybe_unused]] std::byte* memory) {
#ifdef HALOCLINE_BENCH_FUSED
  std::vector<PackJob> jobs;
  for (auto& [plan, job] : all) jobs.push_back({std::move(plan), memory + job.offset, job.count});
  const FusedPlan plan(std::move(jobs));
  return Method{
      batch([plan](std::byte*, std::byte* packed) { HostPacker().pack(plan, packed); }),
      batch([plan](std::byte*, std::byte* packed) { HostPacker().unpack(plan, packed); })};
#else
  return UnsupportedDatatype("no fused plans in this version");
#endif
}

/// Our pack and unpack of all jobs. A fused plan is bound to `memory`.
inline Result<Method> ours(const std::vector<Job>& jobs, Mode mode, std::byte* memory) {
  std::vector<PlannedJob> all;
  for (const auto& job : jobs) {
    auto plan = plan_of(job.handle);
    if (auto* reason = std::get_if<UnsupportedDatatype>(&plan)) return std::move(*reason);
    all.push_back({std::get<PackPlan>(std::move(plan)), job});
  }
  if (mode == Mode::segments) return pack_in_segments(std::move(all));
  if (mode == Mode::fused) return pack_fused(std::move(all), memory);
  return pack_whole(std::move(all));
}

}  // namespace halocline::dtype::bench
