// SPDX-License-Identifier: BSD-3-Clause
// Copies from one layout to another one, without packed bytes in between.
//
// Best peer: Open MPI's shared-memory transports walk both types for every message and call memcpy
// for each piece that they have in common. Halo codes with a shared window copy region by region,
// row by row. Here the loops that both types share are found once, whatever their nesting. Jobs
// that write into the same cache lines write them at one time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
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
  std::vector<CopyStep> steps;  ///< in the order of their first destinations, plan by plan
  Attachment attachment;        ///< the kernels or tables of each back end

  /// Adds a step behind the last one. Sets its end, `bytes` bytes behind that of the last step.
  void add(CopyStep step, std::int64_t bytes);
};

}  // namespace detail

/// Holds many copies, compiled into one. Immutable; copies share it, also between threads.
///
/// Each job is taken apart into nests of the loops that its two types have in common. The nests of
/// all jobs are sorted by destination. They are joined where they continue each other on both
/// sides. Nests that write to the same rows take turns there, and so do nests that copy between the
/// same rows in both directions. So no cache line is fetched twice.
///
/// A job without common loops becomes a list of the runs that both sides have in common. A list of
/// more than 64 runs has at most one for each 64 bytes, and at most 2^18. For a longer list, the
/// job is copied through a window that stays in the nearest cache.
class CopyPlan {
 public:
  /// Compiles the jobs. Local. Throws ConfigError if the two sides of a job differ in bytes. O(jobs
  /// log jobs + blocks of the jobs that become lists).
  explicit CopyPlan(const std::vector<CopyJob>& jobs = {});

  enum class Half { first, second };
  /// Returns one half of this plan, for one of two processes that share its copies. Both halves
  /// together copy each byte once. Steps are cut at a step of their longest loop, at a cache line
  /// of a piece, or at a whole job. So the bytes of both halves may differ a little. O(nests +
  /// pieces).
  CopyPlan half(Half which) const;

  /// Returns the copies of all `plans` in their order, as one plan. O(nests + pieces).
  static CopyPlan joined(const std::vector<CopyPlan>& plans);

  /// Returns this plan for memory at other addresses. `address_of(a)` is the new place of the byte
  /// at `a`. It is called for each begin of a source or a destination, and for the buffers of jobs.
  /// O(nests + pieces).
  CopyPlan moved(const std::function<detail::Address(detail::Address)>& address_of) const;

  /// Returns the bytes that all jobs together copy.
  std::int64_t bytes() const { return steps().empty() ? 0 : steps().back().end; }

  const detail::CopyProgram& program() const { return *program_; }

 private:
  explicit CopyPlan(std::shared_ptr<const detail::CopyProgram> program)
      : program_(std::move(program)) {}

  const std::vector<detail::CopyStep>& steps() const { return program_->steps; }

  std::shared_ptr<const detail::CopyProgram> program_;
};

}  // namespace halocline::dtype
