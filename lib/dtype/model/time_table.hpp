// SPDX-License-Identifier: BSD-3-Clause
// Interpolates measured times: seconds over bytes, over bytes and messages at once, and over bytes,
// block length and stride.
//
// Best peer: [PEA21 section 6.3] interpolates packs over size and block length at one stride, and
// messages one at a time. Here all three axes count (errata B.12), and so do messages that are
// under way together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace halocline::dtype {

/// Is the largest grid point of a table. Grid points ascend from at least 1. With this limit and
/// kMaxSeconds every look-up is finite.
inline constexpr auto kMaxPoint = std::int64_t{1} << 40;
/// Is the longest time of a table, in seconds. Times are above 0.
inline constexpr double kMaxSeconds = 1e9;

/// Is the least size of a last point, in bytes, whose slope can be a bandwidth. One rule holds for
/// all tables, and reach() applies it:
///
/// - Up to the last point, times are measured.
/// - Beyond the last point, the slope of the last two points may be a bandwidth. The last point
///   must have at least kBandwidthBytes (several messages: all together). It must have taken longer
///   than the point before it.
/// - A bandwidth is good for up to kBeyond times the bytes of the last point.
///
/// at() also answers beyond the reach, with a number that means nothing.
inline constexpr auto kBandwidthBytes = std::int64_t{1} << 20;
/// Is the factor beyond the last point for which a bandwidth is good (see kBandwidthBytes).
inline constexpr std::int64_t kBeyond = 64;

/// Returns a number of bytes with its unit: "64 B", "1.79 MiB".
std::string text_of_bytes(std::int64_t bytes);

/// Interpolates seconds over bytes.
///
/// - At the measured points: exact; between them: linear.
/// - Up to the first point: the time of the first point (the latency).
/// - Beyond the last point: on with the slope of the last two points (the bandwidth), or 0 if it is
///   negative.
/// - Beyond a single point: in proportion to the bytes.
class Curve {
 public:
  /// Takes one time in seconds for each point. Throws ConfigError with `where` in it if kMaxPoint
  /// or kMaxSeconds is exceeded, or the points do not ascend.
  Curve(std::vector<std::int64_t> bytes, std::vector<double> seconds, const std::string& where);

  /// Returns the seconds for `bytes` >= 0. O(log points).
  double at(double bytes) const;

  /// Returns the largest number of bytes that at() is good for. A point stands for `messages`
  /// messages of its bytes each. O(1).
  std::int64_t reach(std::int64_t messages = 1) const;
  /// Tells if at(bytes) is good. O(1).
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

/// Interpolates the seconds until several equal messages, sent at once, have all arrived. The axes
/// are the bytes of each message and the number of messages.
class MessageTimes {
 public:
  struct AtOnce {
    std::int64_t messages;
    Curve curve;
    bool operator==(const AtOnce&) const = default;
  };

  /// Takes curves for numbers of messages that ascend from 1. Throws ConfigError with `where` in it
  /// if they do not.
  MessageTimes(std::vector<AtOnce> measured, const std::string& where);

  /// Returns the seconds for `messages` >= 1 of `bytes` each. Linear between the two measured
  /// numbers of messages around. Beyond the largest number, in proportion to the messages. O(log
  /// points + log numbers).
  double at(std::int64_t messages, double bytes) const;

  /// Returns the largest number of bytes of each message that at() is good for. That is the least
  /// reach of the curves that at() uses. O(log numbers).
  std::int64_t reach(std::int64_t messages) const;

  const std::vector<AtOnce>& measured() const { return measured_; }
  bool operator==(const MessageTimes&) const = default;

 private:
  /// Holds the one or two curves that at() uses for a number of messages, from `first` to before
  /// `last`.
  struct Around {
    std::vector<AtOnce>::const_iterator first, last;
  };
  Around around(std::int64_t messages) const;

  std::vector<AtOnce> measured_;
};

/// Interpolates seconds over packed bytes, block length and stride. The stride is the distance in
/// bytes between the starts of two blocks that follow each other. The grid is full. A grid point
/// whose block is longer than its bytes stands for one block of these bytes. A grid point whose
/// block is longer than its stride stands for blocks without gaps.
class PackTable {
 public:
  struct Axes {
    std::vector<std::int64_t> bytes, block_bytes, stride_bytes;
    bool operator==(const Axes&) const = default;
  };

  /// Takes a full grid of times; in `seconds`, the bytes are the slowest axis and the stride the
  /// fastest. Throws ConfigError with `where` in it if a number is beyond kMaxPoint or kMaxSeconds,
  /// or an axis does not ascend.
  PackTable(Axes axes, std::vector<double> seconds, const std::string& where);

  /// Is a place on an axis, `fraction` of the way between two of its points.
  struct Place {
    std::size_t below, above;
    double fraction;
  };

  /// Interpolates the times for blocks of one shape, over the bytes. Refers to its table.
  class OfShape {
   public:
    OfShape(const PackTable& table, Place block, Place stride)
        : table_(table), block_(block), stride_(stride) {}
    /// Returns the seconds for `bytes` >= 0, by the rule of Curve. O(log points).
    double at(double bytes) const;
    /// Returns the largest number of bytes that at() is good for. O(1).
    std::int64_t reach() const;
    /// Tells if at(bytes) is good. O(1).
    bool reaches(double bytes) const {
      return bytes <= static_cast<double>(table_.axes_.bytes.back()) ||
             bytes <= static_cast<double>(reach());
    }

   private:
    double seconds_at(std::size_t point) const;

    const PackTable& table_;
    Place block_, stride_;
  };

  /// Returns the times for blocks of this length and stride, both in bytes. They are exact at the
  /// grid points. Between them they are linear in the bytes, and in the logarithms of block length
  /// and stride. Beyond the grid, the nearest block length and stride count. The sign of a stride
  /// does not count. O(log points).
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
