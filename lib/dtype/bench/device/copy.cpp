// SPDX-License-Identifier: BSD-3-Clause
// Measures the scale of all other groups: plain copies and empty launches. Also measures finding
// out the kind of memory of an address.
#include <algorithm>

#include "dtype/bench/device/harness.hpp"

namespace halocline::dtype::bench {

std::vector<DeviceBenchmark> device_copies(const DeviceOptions& options) {
  constexpr std::int64_t kMebi = 1 << 20;
  std::vector<DeviceBenchmark> out = {
      {"empty-kernel", [](DeviceHarness& harness) { return harness.measure_empty_kernel(); }}};
  for (const auto kind : {MemoryKind::host, MemoryKind::pinned, MemoryKind::device})
    out.push_back({std::string("kind-of-") + name(kind),
                   [=](DeviceHarness& harness) { return harness.measure_kind_of(kind); }});
  const auto add = [&](const std::string& what, Direction direction, MemoryKind packed,
                       std::int64_t most) {
    if (options.smoke) most = 1;
    for (std::int64_t mebi = options.quick ? most : 1; mebi <= most; mebi *= 2)
      out.push_back({what + "-" + std::to_string(mebi) + "MiB", [=](DeviceHarness& harness) {
                       return harness.measure_copy(direction, packed, mebi * kMebi);
                     }});
  };
  add("device", Direction::pack, MemoryKind::device, 512);
  add("to-host", Direction::pack, MemoryKind::pinned, 64);
  add("from-host", Direction::unpack, MemoryKind::pinned, 64);
  return out;
}

}  // namespace halocline::dtype::bench
