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

constexpr Column kCopyColumns[] = {
    {"bytes", "bytes", 10, 0},           {"one by one us", "ours_us", 13, 2},
    {"in a row us", "stream_us", 11, 2}, {"p10", "stream_p10_us", 8, 2},
    {"p90", "stream_p90_us", 8, 2},      {"GB/s", "gb_s", 7, 1}};
constexpr Column kStridedColumns[] = {{"bytes", "bytes", 8, 0},
                                      {"blocks", "blocks", 8, 0},
                                      {"ours us", "ours_us", 9, 2},
                                      {"in a row", "stream_us", 9, 2},
                                      {"GB/s", "gb_s", 7, 1},
                                      {"of copy", "of_copy", 7, 2},
                                      {"of sectors", "of_sectors", 10, 2},
                                      {"TEMPI us", "tempi_us", 9, 2},
                                      {"3D us", "memcpy3d_us", 9, 2},
                                      {"blocks us", "blocks_us", 10, 2},
                                      {"MPI us", "mpi_us", 10, 2},
                                      {"vs TEMPI", "vs_tempi", 9, 2},
                                      {"vs 3D", "vs_memcpy3d", 7, 2},
                                      {"vs blocks", "vs_blocks", 10, 1},
                                      {"vs MPI", "vs_mpi", 8, 1}};
constexpr Column kHaloColumns[] = {
    {"bytes", "bytes", 9, 0},        {"ours us", "ours_us", 9, 2},
    {"in a row", "stream_us", 9, 2}, {"GB/s", "gb_s", 7, 1},
    {"of copy", "of_copy", 7, 2},    {"of sectors", "of_sectors", 10, 2},
    {"TEMPI us", "tempi_us", 9, 2},  {"208 ours us", "separate_us", 11, 2},
    {"3D us", "memcpy3d_us", 9, 2},  {"vs TEMPI", "vs_tempi", 9, 2},
    {"vs 208", "vs_separate", 7, 2}, {"vs 3D", "vs_memcpy3d", 7, 2}};
constexpr Column kGraphColumns[] = {{"bytes", "bytes", 9, 0},
                                    {"replay us", "ours_us", 10, 2},
                                    {"in a row", "stream_us", 9, 2},
                                    {"launches us", "launches_us", 12, 2},
                                    {"vs launches", "vs_launches", 12, 2}};
constexpr Column kListColumns[] = {{"bytes", "bytes", 9, 0},
                                   {"blocks", "blocks", 8, 0},
                                   {"ours us", "ours_us", 9, 2},
                                   {"in a row", "stream_us", 9, 2},
                                   {"GB/s", "gb_s", 7, 1},
                                   {"of copy", "of_copy", 7, 2},
                                   {"of sectors", "of_sectors", 10, 2},
                                   {"gather us", "gather_us", 9, 2},
                                   {"blocks us", "blocks_us", 10, 2},
                                   {"vs gather", "vs_gather", 10, 2},
                                   {"vs blocks", "vs_blocks", 10, 1}};

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
          {{"copy", "plain copies; GB/s read and written, or through the link to the host",
            kCopyColumns, of(device_copies), true},
           {"fig8",
            "2-D objects up to a span of 2 GiB, pitch 512 bytes; vs: ours is N x as fast ([PEA21 "
            "figure 8]: 5.7 to 242,000 x as fast as an MPI that copies block by block)",
            kStridedColumns, measured(fig8)},
           {"fig10",
            "pack and unpack through memory of the device and, one-shot, of the host [PEA21 "
            "figure 10]",
            kStridedColumns, measured(fig10)},
           {"halo",
            "26 regions of 8 fields of doubles or floats, radius 3: ours in one launch, TEMPI in "
            "208 that are waited for; vs: ours is N x as fast",
            kHaloColumns, measured(device_halo)},
           {"graph",
            "halo, staged through memory of the device or not: a recording replayed; vs launches: "
            "N x as fast",
            kGraphColumns, of(device_graphs)},
           {"lists",
            "what is not strided; gather: a kernel with a list of all words; vs: ours is N x as "
            "fast",
            kListColumns, measured(device_lists)}},
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
