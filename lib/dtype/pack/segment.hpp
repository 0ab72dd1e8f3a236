// SPDX-License-Identifier: BSD-3-Clause
// Processing a part of a datatype: packing, unpacking, (offset, length) pairs or sizes of any range
// of the packed stream [RMG03 section 2.2].
//
// Best peer: MPICH keeps the stack of a segment between calls, so that a position out of order
// costs a walk from the begin; here a segment is a number, and any position is as near as the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "dtype/pack/host/copy_range.hpp"
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
/// a basic element. O(bytes handled + depth + log blocks) each (and the bytes looked ahead at, and
/// empty buckets on the way), no allocation, no recursion.
class Segment {
 public:
  /// `buffer` may be MPI_BOTTOM when the type holds absolute addresses; it is written to by unpack
  /// alone, and is not touched by blocks and measure. It must outlive the segment.
  ///
  /// `lookahead` > 0 lets a segment that is processed in order, in pieces, keep up to that many
  /// bytes of the stream in memory of its own (allocated here) where cache lines of the buffer hold
  /// bytes that are far apart in the stream: each line is then fetched once instead of once per
  /// piece. Packing then reads the buffer ahead of the position; unpacked bytes are in the buffer
  /// once the stream was unpacked to its end, the position was moved otherwise, or flush()
  /// returned.
  Segment(PackPlan plan, const void* buffer, std::int64_t count, std::int64_t lookahead = 0);
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment() { flush(); }

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

  /// Writes what unpack has kept back to the buffer.
  void flush();

  /// Writes the blocks of memory that hold the next bytes, in packed order, until the stream or
  /// `out` ends; returns how many blocks. None continues the one before: they are as few as can be.
  std::size_t blocks(std::span<IoBlock> out);

  struct Measure {
    std::int64_t bytes, blocks;
  };
  /// Passes over at most `bytes` bytes and tells how many these are and how many blocks() would
  /// write for them. O(depth + loops that hold lists or structs; entries of a list cut short;
  /// elements of buckets that are no runs).
  Measure measure(std::int64_t bytes);

 private:
  // A part of the stream in the segment's own memory.
  struct Window {
    std::int64_t first = 0, last = 0;  ///< the bytes that are here
    std::int64_t end = 0;              ///< where it has to end
    bool holds(std::int64_t position) const { return first <= position && position < last; }
  };

  std::int64_t clip(std::int64_t bytes) const;
  void leave();
  template <host::Direction kDirection>
  void copy(std::int64_t first, std::int64_t last, const void* packed);
  std::int64_t window_end(std::int64_t position) const;
  bool uses_window(std::int64_t bytes) const;

  PackPlan plan_;
  const void* buffer_;
  std::int64_t count_, bytes_, position_ = 0;
  std::int64_t resumed_at_ = 0;   // where the last piece ended: the next one in order begins there
  std::int64_t group_bytes_ = 0;  // stretch of the stream that shares its lines; 0: no windows
  std::int64_t group_span_ = 0;   // after which the groups begin anew
  std::unique_ptr<std::byte[]> kept_;
  Window packed_, unpacked_;
};

}  // namespace halocline::dtype
