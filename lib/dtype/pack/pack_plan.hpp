// SPDX-License-Identifier: BSD-3-Clause
// What a packer executes: a loop nest with the instances of a call folded in or put around it.
//
// Best peer: [PEA21] looks a type's kernel up at every call and adds a grid dimension for the
// count; a PackPlan is an owned, immutable object that serves any count without a look-up, a
// compilation or an allocation (errata B.13).
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>
#include <vector>

#include "dtype/loop_nest.hpp"
#include "dtype/support/error.hpp"

namespace halocline::dtype {

/// A compiled pack (and unpack) of any number of instances of one datatype. Immutable; may be
/// shared between threads.
class PackPlan {
 public:
  /// Compiles `nest`. O(levels).
  explicit PackPlan(LoopNest nest);

  /// The loops of one call. Levels stand from the innermost to the outermost; the outermost one is
  /// run `outermost_count` times, all others as often as they say.
  struct Loops {
    std::int64_t start;  ///< bytes from the buffer argument to the first packed byte
    std::int64_t run;    ///< contiguous bytes per innermost step
    std::span<const LoopLevel> levels;
    std::int64_t outermost_count;
  };

  /// The loops for `count` >= 0 instances; no allocation. Without data or with count 0 there is no
  /// run (run == 0).
  Loops loops(std::int64_t count) const;

  /// Bytes that `count` instances take in the packed stream.
  std::int64_t packed_bytes(std::int64_t count) const { return nest_.bounds.size * count; }

  /// The largest power of two, at most 16, that divides everything which moves a pointer: start,
  /// run, all strides and packed strides, extent and size (errata B.5). Accesses of that width are
  /// aligned if the buffers are.
  std::int64_t word_bytes() const { return word_bytes_; }

  const LoopNest& nest() const { return nest_; }

  bool operator==(const PackPlan&) const = default;

 private:
  LoopNest nest_;
  // nest_.levels, plus a level for the instances unless these continue the outermost level or, in a
  // dense type, the run.
  std::vector<LoopLevel> levels_;
  std::int64_t word_bytes_ = 1;
};

/// The plan of an MPI datatype: translate, canonicalize, compile. Local; O(constructor arguments).
Result<PackPlan> make_plan(MPI_Datatype handle);

/// The largest power of two, at most `word_bytes`, to which both addresses are aligned as well.
std::int64_t aligned_word(std::int64_t word_bytes, const void* a, const void* b);

}  // namespace halocline::dtype
