// SPDX-License-Identifier: BSD-3-Clause
// Compares packing and unpacking on the device with other methods, in one run. Each row is verified
// byte by byte. One process; jobs/local/bench.sh is for the host.
//
//   bench_device [--groups=NAME,...] ...    --help shows all options; `copy` always comes first:
//                                           all other groups are compared with it
//
// Works without a device, too, with HALOCLINE_DEVICE=emulated in the environment and --smoke.
//
// Exit codes: 0, 1 if a row is not verified, 2 bad input, 3 the environment failed, 77 no device.
#include <fnmatch.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "dtype/bench/arguments.hpp"
#include "dtype/bench/device/harness.hpp"
#include "dtype/bench/rows.hpp"
#include "dtype/bench/table_report.hpp"
#include "support/error.hpp"

namespace halocline::dtype::bench {

namespace {

template <auto make_cases>
std::vector<DeviceBenchmark> measured(const DeviceOptions& options) {
  std::vector<DeviceBenchmark> all;
  for (auto& one : make_cases(options)) {
    auto name = one.name;
    all.push_back({std::move(name), [one = std::move(one)](DeviceHarness& harness) {
                     return harness.measure(one);
                   }});
  }
  return all;
}

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

struct Group {
  const char* name;
  Table table;
  std::vector<DeviceBenchmark> (*make)(const DeviceOptions&);
};
const Group kGroups[] = {
    {"copy",
     {"plain copies; GB/s read and written, or through the link to the host", kCopyColumns},
     device_copies},
    {"fig8",
     {"2-D objects up to a span of 2 GiB, pitch 512 bytes; vs: ours is N x as fast ([PEA21 figure "
      "8]: 5.7 to 242,000 x as fast as an MPI that copies block by block)",
      kStridedColumns},
     measured<fig8>},
    {"fig10",
     {"pack and unpack through memory of the device and, one-shot, of the host [PEA21 figure 10]",
      kStridedColumns},
     measured<fig10>},
    {"halo",
     {"26 regions of 8 fields of doubles or floats, radius 3: ours in one launch, TEMPI in 208 "
      "that are "
      "waited for; vs: ours is N x as fast",
      kHaloColumns},
     measured<device_halo>},
    {"graph",
     {"halo, staged through memory of the device or not: a recording replayed; vs launches: N x as "
      "fast",
      kGraphColumns},
     device_graphs},
    {"lists",
     {"what is not strided; gather: a kernel with a list of all words; vs: ours is N x as fast",
      kListColumns},
     measured<device_lists>},
};

int run(int argc, char** argv) {
  ArgumentsHelp help{.what = "Packing and unpacking on the device beside what others do there.",
                     .groups = {}};
  for (const auto& group : kGroups) help.groups.emplace_back(group.name);
  const auto arguments = parse_arguments(argc, argv, help);
  if (!arguments) return 0;
  auto* const device = current_device();
  if (device == nullptr) {
    std::fprintf(stderr, "bench_device: no device (%s): nothing to measure\n",
                 why_no_device().c_str());
    return 77;
  }
  const DeviceOptions options{.quick = arguments->quick, .smoke = arguments->smoke};
  DeviceHarness harness(*device, options);
  const auto& properties = device->properties();
  TableReport report(arguments->json, properties.name + ", driver " + properties.driver,
                     {{"device", properties.name}, {"driver", properties.driver}});
  const auto is_wanted = [&](const std::string& name) {
    return std::find(arguments->groups.begin(), arguments->groups.end(), name) !=
           arguments->groups.end();
  };
  for (const auto& group : kGroups) {
    // The scale of all other groups is never left out.
    const bool is_scale = &group == kGroups;
    if (!is_scale && !is_wanted(group.name)) continue;
    auto all = group.make(options);
    if (!is_scale)
      std::erase_if(all, [&](const DeviceBenchmark& one) {
        return fnmatch(arguments->only.c_str(), one.name.c_str(), 0) != 0;
      });
    std::size_t width = 0;
    for (const auto& one : all) width = std::max(width, one.name.size());
    report.begin(group.name, group.table, static_cast<int>(width));
    for (const auto& one : all) report.add(one.name, one.run(harness));
  }
  report.end();
  return report.unverified() > 0 ? 1 : 0;
}

}  // namespace

}  // namespace halocline::dtype::bench

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int code = 3;
  try {
    code = halocline::dtype::bench::run(argc, argv);
  } catch (const halocline::ConfigError& error) {
    std::fprintf(stderr, "bench_device: %s\n", error.what());
    code = 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_device: %s\n", error.what());
  }
  MPI_Finalize();
  return halocline::dtype::bench::end_output("bench_device", code);
}
