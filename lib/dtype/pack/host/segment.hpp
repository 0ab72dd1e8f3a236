// SPDX-License-Identifier: BSD-3-Clause
// Processes a part of a datatype: packs or unpacks any range of the packed stream [RMG03 section
// 2.2].
//
// Best peer: MPICH keeps the stack of a segment between calls, and a position out of order costs a
// walk from the begin. Here a segment is a number, and any position costs the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "dtype/pack/host/copy_range.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::dtype {

/// Is a position in the packed stream of `count` instances.
///
/// Every operation handles the next bytes of the stream in type map order, and moves the position
/// behind them. A position may lie inside of a basic element.
///
/// Complexity of each operation: O(bytes handled + depth + log blocks). Bytes looked ahead at count
/// as handled. Empty buckets on the way cost a step each. No allocation, no recursion.
class Segment {
 public:
  /// Begins at position 0 of the packed stream.
  ///
  /// \param plan the plan of the datatype
  /// \param buffer the user's memory; it must outlive the segment. May be MPI_BOTTOM when the type
  ///   holds absolute addresses. Only unpack writes to it.
  /// \param count instances of the datatype
  /// \param lookahead the most bytes of the stream to keep in memory of the segment, which is
  ///   allocated here. 0 keeps none.
  ///
  /// Kept bytes help when the stream is processed in order, in pieces. They are used if a cache
  /// line of the buffer holds bytes that are far apart in the stream. Each line is then fetched
  /// once instead of once per piece.
  ///
  /// With `lookahead` > 0, packing reads the buffer ahead of the position. Unpacked bytes may reach
  /// the buffer late. They are there once the stream is unpacked to its end, after a seek() to
  /// another position, or after flush().
  Segment(PackPlan plan, const void* buffer, std::int64_t count, std::int64_t lookahead = 0);
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment() { flush(); }

  std::int64_t bytes() const { return bytes_; }
  std::int64_t position() const { return position_; }
  bool done() const { return position_ == bytes_; }
  /// Moves to `position`. Throws ConfigError unless 0 <= position <= bytes().
  void seek(std::int64_t position);

  /// Packs the next bytes, at most `capacity`. Returns their number.
  std::int64_t pack(void* packed, std::int64_t capacity);
  /// Unpacks the next bytes, at most `available`. Returns their number. Legal for types whose
  /// entries do not overlap.
  std::int64_t unpack(const void* packed, std::int64_t available);

  /// Writes the bytes that unpack has kept to the buffer.
  void flush();

 private:
  // Holds a part of the stream in the segment's own memory.
  struct Window {
    std::int64_t first = 0, last = 0;  ///< the bytes that are kept
    std::int64_t end = 0;              ///< position at which the window ends
    bool holds(std::int64_t position) const { return first <= position && position < last; }
  };

  std::int64_t clip(std::int64_t bytes) const;
  void leave();
  template <host::CopyDirection kDirection>
  void copy(std::int64_t first, std::int64_t last, const void* packed);
  std::int64_t window_end(std::int64_t position) const;
  bool uses_window(std::int64_t bytes) const;

  PackPlan plan_;
  const void* buffer_;
  std::int64_t count_, bytes_, position_ = 0;
  std::int64_t resumed_at_ = 0;   // end of the last piece: the next piece in order begins there
  std::int64_t group_bytes_ = 0;  // bytes of the stream that share their lines; 0: no windows
  std::int64_t group_span_ = 0;   // bytes of the stream after which the groups begin anew
  std::unique_ptr<std::byte[]> kept_;
  Window packed_, unpacked_;
};

}  // namespace halocline::dtype
