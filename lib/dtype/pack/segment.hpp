// SPDX-License-Identifier: BSD-3-Clause
// Processing a part of a datatype: packing, unpacking, (offset, length) pairs or sizes of any range
// of the packed stream [RMG03 section 2.2].
//
// Best peer: MPICH keeps the stack of a segment between calls, so that a position out of order
// costs a walk from the begin; here a segment is a number, and any position is as near as the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dtype/pack/pack_plan.hpp"

namespace halocline::dtype {

/// Consecutive bytes of the user's memory, relative to the buffer argument.
struct IoBlock {
  std::int64_t offset;
  std::int64_t length;
  bool operator==(const IoBlock&) const = default;
};

/// A position in the packed stream of `count` instances. Every operation handles the next bytes of
/// the stream, in type map order, and moves the position behind them; a position may lie inside of
/// a basic element. O(bytes handled + depth + log blocks) each, no allocation, no recursion.
class Segment {
 public:
  /// `buffer` may be MPI_BOTTOM when the type holds absolute addresses; it is written to by unpack
  /// alone, and is not touched by blocks and measure. It must outlive the segment.
  Segment(PackPlan plan, const void* buffer, std::int64_t count);

  std::int64_t bytes() const { return bytes_; }
  std::int64_t position() const { return position_; }
  bool done() const { return position_ == bytes_; }
  /// Moves to 0 <= position <= bytes(); throws ConfigError for another one.
  void seek(std::int64_t position);

  /// Packs the next bytes, at most `capacity`; returns how many.
  std::int64_t pack(void* packed, std::int64_t capacity);
  /// Unpacks the next bytes, at most `available`; returns how many. Legal for types whose entries
  /// do not overlap.
  std::int64_t unpack(const void* packed, std::int64_t available);

  /// Writes the blocks of memory that hold the next bytes, in packed order, until the stream or
  /// `out` ends; returns how many blocks. Each holds a run of the canonical form, or what is left
  /// of it.
  std::size_t blocks(std::span<IoBlock> out);

  struct Measure {
    std::int64_t bytes, blocks;
  };
  /// Passes over at most `bytes` bytes and tells how many these are and how many blocks() would
  /// write for them.
  Measure measure(std::int64_t bytes);

 private:
  std::int64_t clip(std::int64_t bytes) const;

  PackPlan plan_;
  const void* buffer_;
  std::int64_t count_, bytes_, position_ = 0;
};

}  // namespace halocline::dtype
