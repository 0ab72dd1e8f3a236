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

/// Tells how far measured times may be used; reach() applies this one rule to all tables. Up to the
/// last point they are measured. Beyond it, the slope of the last two points is a bandwidth if the
/// last point has at least kBandwidthBytes (several messages: all together) and took longer than
/// the point before it. It is then good for up to kBeyond times the bytes of the last point.
/// at() also answers beyond the reach, with a number that means nothing.
inline constexpr auto kBandwidthBytes = std::int64_t{1} << 20;
inline constexpr std::int64_t kBeyond = 64;

/// Writes a number of bytes with its unit: "64 B", "1.79 MiB".
std::string text_of_bytes(std::int64_t bytes);

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

  /// Returns the largest number of bytes that at() is good for, where a point stands for that many
  /// `messages` of its bytes each. O(1).
  std::int64_t reach(std::int64_t messages = 1) const;
  /// Returns whether at(bytes) is good. O(1).
  bool reaches(double bytes, std::int64_t messages = 1) const {
    return bytes <= static_cast<double>(bytes_.back()) ||
           bytes <= static_cast<double>(reach(messages));
  }

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

  /// Returns the largest number of bytes of each message that at() is good for: as far as the
  /// curves reach that it uses. O(log numbers).
  std::int64_t reach(std::int64_t messages) const;

  const std::vector<AtOnce>& measured() const { return measured_; }
  bool operator==(const MessageTimes&) const = default;

 private:
  /// The curves that at() uses for a number of messages: one or two, from `first` to before `last`.
  struct Around {
    std::vector<AtOnce>::const_iterator first, last;
  };
  Around around(std::int64_t messages) const;

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
    /// Returns the largest number of bytes that at() is good for. O(1).
    std::int64_t reach() const;
    /// Returns whether at(bytes) is good. O(1).
    bool reaches(double bytes) const {
      return bytes <= static_cast<double>(table_.axes_.bytes.back()) ||
             bytes <= static_cast<double>(reach());
    }

   private:
    double seconds_at(std::size_t point) const;

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
