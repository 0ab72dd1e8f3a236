// SPDX-License-Identifier: BSD-3-Clause
// Copies from one layout to another one, without packed bytes in between.
//
// Best peer: Open MPI's shared-memory transports walk both types for every message and call memcpy
// for each piece that they have in common. Halo codes with a shared window copy region by region,
// row by row. Here the loops that both types share are found once, whatever their nesting. Jobs
// that write into the same cache lines write them at one time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dtype/pack/address.hpp"
#include "dtype/pack/attachment.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::dtype {

/// Copies `source_count` instances at `source` to `destination_count` instances at `destination`.
///
/// The result is that of packing the source and unpacking these bytes at the destination. Buffers
/// belong to the user; either may be MPI_BOTTOM. Bytes of the source may overlap each other. Bytes
/// of the destination must overlap neither each other nor the source.
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

/// Holds runs in loops, the innermost first. In its levels, `stride` belongs to the source and
/// `packed_stride` to the destination.
struct CopyNest {
  Address source, destination;
  std::int64_t run;
  std::vector<LoopLevel> levels;
  std::int64_t bytes() const;
};

/// Is a run that ends at `end` among the bytes of its step.
struct CopyPiece {
  Address source, destination;
  std::int64_t end;
};

/// Describes what is copied at a time.
struct CopyStep {
  enum class Kind : std::uint8_t {
    nests,    ///< nests [first, last) with the same counts, in turn, a part of each
    pieces,   ///< pieces [first, last)
    windowed  ///< windowed[first], copied through a window of a few KiB, since its list would be
              ///< too long
  };
  Kind kind;
  std::size_t first, last;
  std::int64_t end = 0;  ///< bytes of all steps up to and including this step
};

struct CopyProgram {
  std::vector<CopyNest> nests;
  std::vector<CopyPiece> pieces;
  std::vector<CopyJob> windowed;
  std::vector<CopyStep> steps;  ///< in the order of their destinations, cyclically from one of them
  Attachment attachment;        ///< the kernels or tables of each back end
};

}  // namespace detail

/// Holds many copies, compiled into one. Immutable; copies share it, also between threads.
///
/// Each job is taken apart into nests of the loops that its two types have in common. The nests of
/// all jobs are sorted by destination. They are joined where they continue each other on both
/// sides. Nests that write to the same rows take turns there, so that no cache line is fetched
/// twice.
///
/// A job without common loops becomes a list of the runs that both sides have in common. A list of
/// more than 64 runs has at most one for each 64 bytes, and at most 2^18. For a longer list, the
/// job is copied through a window that stays in the nearest cache.
class CopyPlan {
 public:
  /// Says at which of its destinations a copy begins.
  ///
  /// Two processes may read each other's arrays and write to their own at one time. They wait for
  /// the cache lines in which they do both, unless one of them begins in the middle. With `middle`,
  /// x faces of 64^3 points take 3/4 of the time.
  enum class Begin { front, middle };

  /// Compiles the jobs. Local. Throws ConfigError if the two sides of a job differ in bytes. O(jobs
  /// log jobs + blocks of the jobs that become lists).
  explicit CopyPlan(const std::vector<CopyJob>& jobs = {}, Begin begin = Begin::front);

  /// Returns the bytes that all jobs together copy.
  std::int64_t bytes() const { return steps().empty() ? 0 : steps().back().end; }

  const detail::CopyProgram& program() const { return *program_; }

 private:
  const std::vector<detail::CopyStep>& steps() const { return program_->steps; }

  std::shared_ptr<const detail::CopyProgram> program_;
};

}  // namespace halocline::dtype
