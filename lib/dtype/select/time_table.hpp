// SPDX-License-Identifier: BSD-3-Clause
// Measured times as functions: seconds over bytes, over bytes and messages at once, and over bytes,
// block length and stride.
//
// Best peer: [PEA21 section 6.3] interpolates packs over size and block length at one stride, and
// messages one at a time. Here all three axes count (errata B.12), and so do the messages that are
// under way together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace halocline::dtype {

/// What a table may hold: grid points from 1 to kMaxPoint, ascending, and times above 0 and of at
/// most kMaxSeconds. Within these every look-up is finite.
inline constexpr auto kMaxPoint = std::int64_t{1} << 40;
inline constexpr double kMaxSeconds = 1e9;

/// Seconds over bytes, by what was measured: exact at the measured points and linear between them;
/// up to the first point its time (the latency); beyond the last one on with the slope of the last
/// two (the bandwidth), which counts as 0 if it is negative; of a single point, in proportion to
/// the bytes beyond it.
class Curve {
 public:
  /// One time for each point. Throws ConfigError, with `where` in it, for what a table may not
  /// hold.
  Curve(std::vector<std::int64_t> bytes, std::vector<double> seconds, const std::string& where);

  /// The time for `bytes` >= 0. O(log points).
  double at(double bytes) const;

  const std::vector<std::int64_t>& bytes() const { return bytes_; }
  const std::vector<double>& seconds() const { return seconds_; }
  bool operator==(const Curve&) const = default;

 private:
  std::vector<std::int64_t> bytes_;
  std::vector<double> seconds_;
};

/// Seconds until all of several equal messages that were sent at once have arrived, over the bytes
/// of each and their number.
class MessageTimes {
 public:
  struct AtOnce {
    std::int64_t messages;
    Curve curve;
    bool operator==(const AtOnce&) const = default;
  };

  /// Numbers of messages ascend from 1. Throws ConfigError, with `where` in it, if they do not.
  MessageTimes(std::vector<AtOnce> measured, const std::string& where);

  /// The time for `messages` >= 1 of `bytes` each: linear between the two measured numbers of
  /// messages around, and in proportion to the messages beyond the largest. O(log points + log
  /// numbers).
  double at(std::int64_t messages, double bytes) const;

  const std::vector<AtOnce>& measured() const { return measured_; }
  bool operator==(const MessageTimes&) const = default;

 private:
  std::vector<AtOnce> measured_;
};

/// Seconds over packed bytes, the length of the blocks that they lie in, and the distance between
/// the starts of two blocks that follow each other. The grid is full; where a block is longer than
/// the bytes it stands for one of their length, and where it is longer than the stride for blocks
/// without gaps.
class PackTable {
 public:
  struct Axes {
    std::vector<std::int64_t> bytes, block_bytes, stride_bytes;
    bool operator==(const Axes&) const = default;
  };

  /// Of `seconds`, the bytes are the slowest axis and the stride the fastest. Throws ConfigError,
  /// with `where` in it, for what a table may not hold.
  PackTable(Axes axes, std::vector<double> seconds, const std::string& where);

  /// A place on an axis, `fraction` of the way between two of its points.
  struct Place {
    std::size_t below, above;
    double fraction;
  };

  /// The times for blocks of one shape, over the bytes. Refers to its table.
  class OfShape {
   public:
    OfShape(const PackTable& table, Place block, Place stride)
        : table_(table), block_(block), stride_(stride) {}
    /// The time for `bytes` >= 0, by the rule of Curve. O(log points).
    double at(double bytes) const;

   private:
    const PackTable& table_;
    Place block_, stride_;
  };

  /// Exact at the grid points; between them linear in the bytes and in the logarithms of the other
  /// two. Beyond the grid, block length and stride count as the nearest that was measured; the sign
  /// of a stride does not count. O(log points).
  OfShape of(std::int64_t block_bytes, std::int64_t stride_bytes) const;

  const Axes& axes() const { return axes_; }
  const std::vector<double>& seconds() const { return seconds_; }
  bool operator==(const PackTable&) const = default;

 private:
  Axes axes_;
  std::vector<double> seconds_;
  std::vector<double> log_block_, log_stride_;
};

}  // namespace halocline::dtype
