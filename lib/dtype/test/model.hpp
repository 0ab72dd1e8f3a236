// SPDX-License-Identifier: BSD-3-Clause
// Makes system models whose times are known functions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dtype/model/system_model.hpp"

namespace halocline::dtype::test {

/// Returns the curve latency + bytes * per_byte, with points 2^20 bytes apart. Interpolation is
/// exact if both numbers are short fractions of powers of two.
inline Curve linear_curve(double latency, double per_byte) {
  const std::vector<std::int64_t> bytes{1, (1 << 20) + 1};
  return {bytes, {latency + per_byte, latency + per_byte * static_cast<double>(bytes[1])}, "test"};
}

/// Returns the times of linear_curve() for any number of messages at once.
inline MessageTimes linear_messages(double latency, double per_byte) {
  return {{{1, linear_curve(latency, per_byte)}, {1 << 20, linear_curve(latency, per_byte)}},
          "test"};
}

/// Returns a table with the times of linear_curve() for every block and stride.
inline PackTable linear_packs(double latency, double per_byte) {
  const auto curve = linear_curve(latency, per_byte);
  return {{curve.bytes(), {8}, {8}}, curve.seconds(), "test"};
}

/// Returns a table with time(bytes, block, stride) at the points of the grid.
template <class Time>
PackTable pack_table(PackTable::Axes axes, Time time) {
  std::vector<double> seconds;
  for (const auto bytes : axes.bytes)
    for (const auto block : axes.block_bytes)
      for (const auto stride : axes.stride_bytes) seconds.push_back(time(bytes, block, stride));
  return {std::move(axes), std::move(seconds), "test"};
}

/// Returns a model in which everything was measured and no two numbers are equal.
inline SystemModel whole_model() {
  SystemModel model;
  model.provenance = {"2024-05-06T07:08:09Z", "a CPU",  "a GPU",  "driver 1",
                      "an MPI, version 2",    "node17", "0123ab", true};
  model.launch_seconds = 2.1e-6;
  model.synchronize_seconds = 3.3e-6;
  model.injection_bytes_per_second = 2.3e10;
  double latency = 1e-6;
  const auto curve = [&] {
    latency += 1.7e-7;
    return Curve({64, 4096, 1 << 20}, {latency, 1.1 * latency, 90 * latency}, "test");
  };
  const auto messages = [&] {
    auto one = curve();
    return MessageTimes({{1, std::move(one)}, {2, curve()}, {8, curve()}}, "test");
  };
  const auto packs = [&] {
    latency += 1.7e-7;
    return pack_table({{64, 4096, 1 << 20}, {8, 128}, {16, 256, 4096, 65536}},
                      [&](auto bytes, auto block, auto stride) {
                        return latency + 1e-11 * static_cast<double>(bytes * stride) /
                                             static_cast<double>(block);
                      });
  };
  for (auto* paths : {&model.host_messages, &model.device_messages}) {
    paths->on_node = messages();
    paths->off_node = messages();
  }
  model.device_to_host = curve();
  model.host_to_device = curve();
  for (auto* times : {&model.device_packing, &model.mapped_packing, &model.host_packing}) {
    times->pack = packs();
    times->unpack = packs();
  }
  for (auto* times : {&model.blocks_on_node, &model.blocks_off_node})
    for (auto* traffic : {&times->strided, &times->listed})
      for (auto* blocks : {&traffic->one_way, &traffic->both_ways}) {
        blocks->packed = packs();
        blocks->typed = packs();
      }
  return model;
}

}  // namespace halocline::dtype::test
