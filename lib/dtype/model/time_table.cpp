// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/model/time_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <utility>

#include "support/error.hpp"

namespace halocline::dtype {

namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& cause) {
  throw ConfigError("measured times cannot be used (" + where + ": " + cause +
                    "): measure them again with 'halocline calibrate'");
}

std::string entry(const char* name, std::size_t i) {
  return name + ("[" + std::to_string(i) + "]");
}

void check_points(std::span<const std::int64_t> points, const char* name,
                  const std::string& where) {
  if (points.empty()) refuse(where, std::string(name) + " is empty");
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i] < 1 || points[i] > kMaxPoint)
      refuse(where, entry(name, i) + " is not from 1 to 2^40");
    if (i > 0 && points[i] <= points[i - 1])
      refuse(where, entry(name, i) + " is not above " + entry(name, i - 1));
  }
}

void check_seconds(std::span<const double> seconds, std::size_t points, const std::string& where) {
  if (seconds.size() != points)
    refuse(where, "seconds has " + std::to_string(seconds.size()) + " values for " +
                      std::to_string(points) + " points");
  for (std::size_t i = 0; i < seconds.size(); ++i)
    if (!(seconds[i] > 0 && seconds[i] <= kMaxSeconds))
      refuse(where, entry("seconds", i) + " is not a time above 0 s and up to 1e9 s");
}

// Returns the seconds for `bytes` by the rule of Curve; value(i) is the time of point i.
template <class Value>
double along_bytes(const std::vector<std::int64_t>& points, double bytes, Value value) {
  const auto point = [&](std::size_t i) { return static_cast<double>(points[i]); };
  const auto last = points.size() - 1;
  if (bytes <= point(0)) return value(0);
  if (last == 0) return value(0) * (bytes / point(0));
  if (bytes > point(last)) {
    const auto slope = (value(last) - value(last - 1)) / (point(last) - point(last - 1));
    return value(last) + std::max(slope, 0.0) * (bytes - point(last));
  }
  const auto above = static_cast<std::size_t>(
      std::lower_bound(points.begin(), points.end(), bytes,
                       [](std::int64_t a, double b) { return static_cast<double>(a) < b; }) -
      points.begin());
  return std::lerp(value(above - 1), value(above),
                   (bytes - point(above - 1)) / (point(above) - point(above - 1)));
}

// Returns the reach by the rule at kBandwidthBytes; value(i) is the time of point i. A point stands
// for `messages` messages.
template <class Value>
std::int64_t reach_along(const std::vector<std::int64_t>& points, std::int64_t messages,
                         Value value) {
  const auto last = points.size() - 1;
  const bool is_long = static_cast<double>(points[last]) * static_cast<double>(messages) >=
                       static_cast<double>(kBandwidthBytes);
  const bool grows = last == 0 || value(last) > value(last - 1);
  return is_long && grows ? points[last] * kBeyond : points[last];
}

std::vector<double> logarithms(const std::vector<std::int64_t>& points) {
  std::vector<double> out;
  for (const auto point : points) out.push_back(std::log2(static_cast<double>(point)));
  return out;
}

// Returns the place of a length among points, of which `points` has the logarithms.
PackTable::Place locate(const std::vector<double>& points, std::int64_t length) {
  const auto x = std::log2(std::max(std::abs(static_cast<double>(length)), 1.0));
  const auto above =
      static_cast<std::size_t>(std::lower_bound(points.begin(), points.end(), x) - points.begin());
  if (above == 0) return {0, 0, 0};
  if (above == points.size()) return {above - 1, above - 1, 0};
  return {above - 1, above, (x - points[above - 1]) / (points[above] - points[above - 1])};
}

}  // namespace

Curve::Curve(std::vector<std::int64_t> bytes, std::vector<double> seconds, const std::string& where)
    : bytes_(std::move(bytes)), seconds_(std::move(seconds)) {
  check_points(bytes_, "bytes", where);
  check_seconds(seconds_, bytes_.size(), where);
}

std::string text_of_bytes(std::int64_t bytes) {
  constexpr double kKibi = 1024;
  auto number = static_cast<double>(bytes);
  const char* unit = "B";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (number < kKibi) break;
    number /= kKibi, unit = next;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.*g %s", number < 100 ? 3 : 4, number, unit);
  return text;
}

std::int64_t Curve::reach(std::int64_t messages) const {
  return reach_along(bytes_, messages, [&](std::size_t i) { return seconds_[i]; });
}

double Curve::at(double bytes) const {
  return along_bytes(bytes_, bytes, [&](std::size_t i) { return seconds_[i]; });
}

MessageTimes::MessageTimes(std::vector<AtOnce> measured, const std::string& where)
    : measured_(std::move(measured)) {
  if (measured_.empty() || measured_.front().messages != 1)
    refuse(where, "its first entry is not for 1 message");
  for (std::size_t i = 1; i < measured_.size(); ++i)
    if (measured_[i].messages <= measured_[i - 1].messages)
      refuse(where, entry("", i) + ".messages is not above " + entry("", i - 1) + ".messages");
}

MessageTimes::Around MessageTimes::around(std::int64_t messages) const {
  const auto above =
      std::lower_bound(measured_.begin(), measured_.end(), messages,
                       [](const AtOnce& a, std::int64_t b) { return a.messages < b; });
  if (above == measured_.end()) return {above - 1, above};
  const bool is_measured = above == measured_.begin() || above->messages == messages;
  return {is_measured ? above : above - 1, above + 1};
}

double MessageTimes::at(std::int64_t messages, double bytes) const {
  const auto [first, last] = around(messages);
  const auto above = last - 1;
  if (messages > above->messages)
    return above->curve.at(bytes) *
           (static_cast<double>(messages) / static_cast<double>(above->messages));
  if (above == first) return above->curve.at(bytes);
  return std::lerp(first->curve.at(bytes), above->curve.at(bytes),
                   static_cast<double>(messages - first->messages) /
                       static_cast<double>(above->messages - first->messages));
}

std::int64_t MessageTimes::reach(std::int64_t messages) const {
  const auto [first, last] = around(messages);
  auto out = first->curve.reach(first->messages);
  for (auto one = first + 1; one != last; ++one)
    out = std::min(out, one->curve.reach(one->messages));
  return out;
}

PackTable::PackTable(Axes axes, std::vector<double> seconds, const std::string& where)
    : axes_(std::move(axes)), seconds_(std::move(seconds)) {
  check_points(axes_.bytes, "bytes", where);
  check_points(axes_.block_bytes, "block_bytes", where);
  check_points(axes_.stride_bytes, "stride_bytes", where);
  check_seconds(seconds_, axes_.bytes.size() * axes_.block_bytes.size() * axes_.stride_bytes.size(),
                where);
  log_block_ = logarithms(axes_.block_bytes);
  log_stride_ = logarithms(axes_.stride_bytes);
}

PackTable::OfShape PackTable::of(std::int64_t block_bytes, std::int64_t stride_bytes) const {
  return {*this, locate(log_block_, block_bytes), locate(log_stride_, stride_bytes)};
}

double PackTable::OfShape::seconds_at(std::size_t point) const {
  const auto strides = table_.log_stride_.size(), blocks = table_.log_block_.size();
  const auto of_block = [&](std::size_t j) {
    const auto* row = &table_.seconds_[(point * blocks + j) * strides];
    return std::lerp(row[stride_.below], row[stride_.above], stride_.fraction);
  };
  return std::lerp(of_block(block_.below), of_block(block_.above), block_.fraction);
}

double PackTable::OfShape::at(double bytes) const {
  return along_bytes(table_.axes_.bytes, bytes, [&](std::size_t i) { return seconds_at(i); });
}

std::int64_t PackTable::OfShape::reach() const {
  return reach_along(table_.axes_.bytes, 1, [&](std::size_t i) { return seconds_at(i); });
}

}  // namespace halocline::dtype
