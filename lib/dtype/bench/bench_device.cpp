// SPDX-License-Identifier: BSD-3-Clause
// Compares packing and unpacking on the device with other methods, in one run. One process;
// bench_dtype is for the host.
//
//   bench_device [--groups=NAME,...] ...    --help shows all options; `copy` always comes first:
//                                           all other groups are compared with it
//
// Works without a device, too, with HALOCLINE_DEVICE=emulated in the environment and --smoke.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dtype/bench/device/harness.hpp"

namespace halocline::dtype::bench {

namespace {

constexpr const char* kStridedColumns =
    "bytes blocks ours_ns stream_ns gb_s of_copy of_sectors tempi_ns memcpy3d_ns blocks_ns mpi_ns "
    "vs_tempi vs_memcpy3d vs_blocks vs_mpi";

Program program() {
  const auto harness = std::make_shared<std::unique_ptr<DeviceHarness>>();
  const auto of = [harness](auto make) { return [=](const Options&) { return make(**harness); }; };
  const auto measured = [harness](std::vector<DeviceCase> (*cases)(const Options&)) {
    return [=](const Options& options) {
      std::vector<Benchmark> out;
      for (auto& one : cases(options)) {
        auto name = one.name;
        out.push_back({std::move(name),
                       [harness, one = std::move(one)] { return (*harness)->measure(one); }});
      }
      return out;
    };
  };
  return {
      .what = "Packing and unpacking on the device beside what others do there.",
      .groups =
          {{"copy", "plain copies; gb_s: read and written, or through the link to the host",
            "ours_ns", "bytes ours_ns stream_ns stream_p10_ns stream_p90_ns gb_s",
            of(device_copies), true},
           {"fig8",
            "2-D objects up to a span of 2 GiB, pitch 512 bytes ([PEA21 figure 8]: 5.7 to 242,000 "
            "x as fast as an MPI that copies block by block)",
            "ours_ns", kStridedColumns, measured(fig8)},
           {"fig10",
            "pack and unpack through memory of the device and, one-shot, of the host [PEA21 figure "
            "10]",
            "ours_ns", kStridedColumns, measured(fig10)},
           {"halo",
            "26 regions of 8 fields of doubles or floats, radius 3: ours in one launch, tempi in "
            "208 that are waited for",
            "ours_ns",
            "bytes ours_ns stream_ns gb_s of_copy of_sectors tempi_ns separate_ns memcpy3d_ns "
            "vs_tempi vs_separate vs_memcpy3d",
            measured(device_halo)},
           {"graph",
            "halo, staged through memory of the device or not: a recording replayed, and its "
            "launches",
            "ours_ns", "bytes ours_ns stream_ns launches_ns vs_launches", of(device_graphs)},
           {"lists", "what is not strided; gather: a kernel with a list of all words", "ours_ns",
            "bytes blocks ours_ns stream_ns gb_s of_copy of_sectors gather_ns blocks_ns vs_gather "
            "vs_blocks",
            measured(device_lists)}},
      .start = [harness](const Options& options) -> Facts {
        auto* const device = current_device();
        if (device == nullptr)
          throw NothingToMeasure("no device (" + why_no_device() + "): nothing to measure");
        *harness = std::make_unique<DeviceHarness>(*device, options);
        const auto& properties = device->properties();
        return {properties.name + ", driver " + properties.driver,
                {{"device", properties.name}, {"driver", properties.driver}}};
      }};
}

}  // namespace

}  // namespace halocline::dtype::bench

int main(int argc, char** argv) {
  using namespace halocline::dtype::bench;
  return bench_main("bench_device", argc, argv, program);
}
