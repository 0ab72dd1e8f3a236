// SPDX-License-Identifier: BSD-3-Clause
// Copies from one layout to another one, without the packed bytes between them.
//
// Best peer: Open MPI's shared-memory transports walk both types for every message and call memcpy
// for each piece that they have in common; halo codes with a shared window copy region by region,
// row by row. Here the loops that both types share are found once, whatever their nesting, and what
// many jobs write into the same cache lines is written at one time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dtype/pack/attachment.hpp"
#include "dtype/pack/host/nest.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::dtype {

/// `source_count` instances at `source` to `destination_count` instances at `destination`: what
/// packing the former and unpacking that as the latter does. Buffers belong to the user; either may
/// be MPI_BOTTOM. The bytes of the source may overlap each other, those of the destination neither
/// each other nor the source's.
struct CopyJob {
  PackPlan source_plan;
  const void* source;
  std::int64_t source_count;
  PackPlan destination_plan;
  void* destination;
  std::int64_t destination_count;

  std::int64_t bytes() const { return source_plan.packed_bytes(source_count); }
};

namespace detail {

/// Runs in loops, the innermost first: `stride` is of the source, `packed_stride` of the
/// destination.
struct CopyNest {
  host::Address source, destination;
  std::int64_t run;
  std::vector<LoopLevel> levels;
  host::NestKernel kernel = nullptr;  ///< for a unit of the step that this belongs to
  std::int64_t bytes() const;
};

/// A run, which ends at `end` among the bytes of its step.
struct CopyPiece {
  host::Address source, destination;
  std::int64_t end;
};

/// What is copied at a time.
struct CopyStep {
  enum class Kind : std::uint8_t {
    nests,   ///< nests [first, last) in turn, a unit of each: they have the same counts; or two
             ///< that differ in their begin only, together, if there are `twins` for them
    pieces,  ///< pieces [first, last)
    staged   ///< staged[first], through a window of a few KiB: a list for it would be too long
  };
  Kind kind;
  std::size_t first, last;
  std::int64_t end = 0;  ///< bytes of the steps up to and with this one
  /// Of nests: a unit is `chunk` steps of levels[rank], with all levels inside of it; or what is
  /// left of these steps.
  int rank = 0;
  std::int64_t chunk = 1, units = 0;
  host::TwinKernel twins = nullptr;
};

struct CopyProgram {
  std::vector<CopyNest> nests;
  std::vector<CopyPiece> pieces;
  std::vector<CopyJob> staged;
  std::vector<CopyStep> steps;  ///< in the order of their destinations, from some one on
  Attachment attachment;        ///< what a device needs
};

}  // namespace detail

/// Many copies compiled into one. Immutable; copies share it, also between threads.
///
/// Jobs are taken apart into nests of the loops that their two types have in common, these sorted
/// by destination and joined where they continue each other on both sides, whichever jobs they are
/// from. Nests that write to the same rows take turns there, so that no cache line is fetched
/// twice. What has no common loops is a list of the runs that both sides have in common, of at
/// most 64 of them or one for each 64 bytes, 2^18 for a job; longer ones are not made, and the job
/// is copied through a window that stays in the nearest cache.
class CopyPlan {
 public:
  /// Where in the order of the destinations a copy begins. Two processes that read each other's
  /// arrays and write to their own at one time wait for the cache lines in which they do both,
  /// unless one of them begins in the middle: x faces of 64^3 points take 3/4 of the time.
  enum class Begin { front, middle };

  /// Local. Throws ConfigError if a job's sizes differ. O(jobs log jobs + blocks of the jobs that
  /// become lists).
  explicit CopyPlan(const std::vector<CopyJob>& jobs = {}, Begin begin = Begin::front);

  /// Bytes that all jobs together copy.
  std::int64_t bytes() const { return steps().empty() ? 0 : steps().back().end; }

  /// Bytes of all tables.
  std::int64_t metadata_bytes() const;

  const detail::CopyProgram& program() const { return *program_; }

 private:
  const std::vector<detail::CopyStep>& steps() const { return program_->steps; }

  std::shared_ptr<const detail::CopyProgram> program_;
};

/// For people: the steps in their order, a line for each nest.
std::string to_string(const CopyPlan& plan);

}  // namespace halocline::dtype
