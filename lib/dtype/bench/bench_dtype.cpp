// SPDX-License-Identifier: BSD-3-Clause
// Compares packing with our plans with the loop by hand, MPI_Pack and memcpy. Google Benchmark runs
// each case as one benchmark of one iteration, whose counters are the row. The harness measures.
//
//   bench_dtype --list
//   bench_dtype --group=NAME [--group=NAME...] [FLAG...]
//   bench_dtype --smoke          all groups at small sizes: does everything work, and verify?
//
//   --only=PATTERN               cases by name, e.g. '3d-*'
//   --json                       one JSON object per row, and nothing else
//   --quick                      few samples, no reruns
//   --points=N                   edge of the block in groups halo and copy, default 256
//   --benchmark_...              flags of Google Benchmark
//
// Exit codes: 0, 1 if a row is not verified, 2 bad input, 3 the environment failed.
#include <benchmark/benchmark.h>
#include <fnmatch.h>
#include <mpi.h>
#include <sched.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dtype/pack/kokkos/kokkos_threads.hpp"
#include "harness.hpp"
#include "report.hpp"
#include "rows.hpp"
#include "support/error.hpp"

namespace halocline::dtype::bench {

namespace {

template <auto make_cases>
std::vector<Benchmark> measured(const Options& options) {
  std::vector<Benchmark> all;
  for (auto& one : make_cases(options)) {
    auto name = one.name;
    all.push_back({std::move(name),
                   [one = std::move(one)](const Options& effort) { return measure(one, effort); }});
  }
  return all;
}

struct Group {
  std::string_view name, what;
  std::vector<Benchmark> (*make)(const Options&);
};
constexpr Group kGroups[] = {
    {"table1", "Ross et al. 2003, Table 1", measured<table1>},
    {"segments", "the same in segments of 64 KiB", measured<segments>},
    {"halo", "the 26 slabs of a 256^3 block, radius 3, one by one and fused", measured<halo>},
    {"patterns", "application patterns around 1 MiB and, -small, 4 to 64 KiB; transposes",
     measured<patterns>},
    {"lists", "index lists with a structure that they do not tell", measured<lists>},
    {"further", "types that MPI does not have, by rule and as -listed by MPI", measured<further>},
    {"tiny", "below 4 KiB: the cost of a call", measured<tiny>},
    {"widths", "runs of every width beside a memcpy for each", measured<widths>},
    {"threads", "by all threads of Kokkos' host execution space", measured<threads>},
    {"copy", "halos of 128^3 and 256^3 blocks into another one's ghosts, without packing", copy},
    {"commit", "create, commit and plan a datatype", commit},
    {"lookup", "find a plan by its handle", lookup},
    {"reconstruct", "the cheapest type path of a displacement sequence", reconstruct},
    {"select", "choose a transfer by the system model", select},
    {"interposed", "table1 and tiny through MPI_Pack: start with LD_PRELOAD=libhalocline_mpi.so",
     measured<interposed>},
    {"calls", "calls that the interposer passes on: start with LD_PRELOAD=libhalocline_mpi.so",
     calls},
};

struct Arguments {
  Options options;
  std::vector<std::string> groups;
  std::string only = "*";
  bool json = false, list = false;
};

// Takes our flags out of argv. All other flags are left to Google Benchmark.
Arguments parse(int& argc, char** argv) {
  Arguments out;
  const auto value_of = [](std::string_view argument, std::string_view flag, auto&& use) {
    if (!argument.starts_with(flag)) return false;
    use(argument.substr(flag.size()));
    return true;
  };
  const auto switched = [](std::string_view argument, std::string_view flag, bool& on) {
    if (argument == flag) on = true;
    return argument == flag;
  };
  char** const end = std::remove_if(argv + 1, argv + argc, [&](const char* text) {
    const std::string_view argument = text;
    return switched(argument, "--json", out.json) || switched(argument, "--list", out.list) ||
           switched(argument, "--quick", out.options.quick) ||
           switched(argument, "--smoke", out.options.smoke) ||
           value_of(argument, "--group=", [&](auto value) { out.groups.emplace_back(value); }) ||
           value_of(argument, "--only=", [&](auto value) { out.only = value; }) ||
           value_of(argument, "--points=", [&](auto value) {
             const auto* last = value.data() + value.size();
             const auto [stop, error] = std::from_chars(value.data(), last, out.options.points);
             if (error != std::errc() || stop != last || out.options.points < 3)
               throw ConfigError("--points=" + std::string(value) +
                                 " cannot be used (not a number from 3 on): use e.g. --points=64");
           });
  });
  argc = static_cast<int>(end - argv);
  if (out.options.smoke) {
    out.options.points = std::min<std::int64_t>(out.options.points, 12);
    if (out.groups.empty())
      for (const auto& group : kGroups) out.groups.emplace_back(group.name);
  }
  return out;
}

void list_groups() {
  for (const auto& group : kGroups)
    std::printf("%-10s %s\n", std::string(group.name).c_str(), std::string(group.what).c_str());
}

const Group& find_group(const std::string& name) {
  const auto* found = std::find_if(std::begin(kGroups), std::end(kGroups),
                                   [&](const auto& group) { return group.name == name; });
  if (found == std::end(kGroups))
    throw ConfigError("no group '" + name + "' (of benchmarks): --list shows them");
  return *found;
}

// The row travels to the reporter, and to --benchmark_out, as counters and label.
void register_one(const Group& group, const Benchmark& one, const Options& options) {
  const auto name = std::string(group.name) + "/" + one.name;
  benchmark::RegisterBenchmark(name.c_str(),
                               [one, options](benchmark::State& state) {
                                 Row row;
                                 for (auto _ : state) {
                                   row = one.run(options);
                                   double seconds = 0;
                                   for (const auto& [field, value] : row.fields)
                                     if (field == "pack_ns" || field == "total_ns")
                                       seconds = value * 1e-9;
                                   state.SetIterationTime(seconds);
                                 }
                                 for (const auto& [field, value] : row.fields)
                                   state.counters[field] = value;
                                 state.counters["verified"] = row.verified ? 1 : 0;
                                 state.SetLabel(row.note);
                               })
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

// Returns the length of the longest name, 0 if no case was registered.
int register_all(const Arguments& arguments) {
  std::size_t width = 0;
  for (const auto& name : arguments.groups) {
    const auto& group = find_group(name);
    for (const auto& one : group.make(arguments.options)) {
      if (fnmatch(arguments.only.c_str(), one.name.c_str(), 0) != 0) continue;
      register_one(group, one, arguments.options);
      width = std::max(width, one.name.size());
    }
  }
  return static_cast<int>(width);
}

// Starts Kokkos, with one thread except for the group `threads`. That group has as many threads as
// OMP_NUM_THREADS says or, without it, as there are cores. It ignores the cores to which the
// launcher has bound us. Afterwards this thread is bound to one of the cores that it was given.
class Threads {
 public:
  explicit Threads(bool many)
      : kokkos_(Kokkos::InitializationSettings()
                    .set_num_threads(many ? unbind() : limit_kokkos_threads(1))
                    .set_disable_warnings(true)) {
    sched_setaffinity(0, sizeof given_, &given_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(std::max(sched_getcpu(), 0)), &one);
    sched_setaffinity(0, sizeof one, &one);
  }

 private:
  // Allows all cores to this process. Returns the number of threads for Kokkos.
  static int unbind() {
    cpu_set_t all;
    CPU_ZERO(&all);
    for (std::size_t i = 0; i < CPU_SETSIZE; ++i) CPU_SET(i, &all);
    sched_setaffinity(0, sizeof all, &all);
    const bool known = sched_getaffinity(0, sizeof all, &all) == 0;
    const auto* wanted = std::getenv("OMP_NUM_THREADS");
    const int threads = std::max(wanted != nullptr ? std::atoi(wanted)
                                 : known           ? CPU_COUNT(&all)
                                                   : 1,
                                 1);
    if (threads > kMostKokkosThreads)
      std::fprintf(stderr, "bench_dtype: %d threads instead of %d: Kokkos has room for no more\n",
                   kMostKokkosThreads, threads);
    return limit_kokkos_threads(threads);
  }
  static cpu_set_t given() {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    return set;
  }

  cpu_set_t given_ = given();
  Kokkos::ScopeGuard kokkos_;
};

int run(int argc, char** argv) {
  const auto arguments = parse(argc, argv);
  if (arguments.list) {
    list_groups();
    return 0;
  }
  if (arguments.groups.empty())
    throw ConfigError("no group given (of benchmarks): --list shows them, --group=NAME runs one");
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const auto& groups = arguments.groups;
  const Threads threads(std::find(groups.begin(), groups.end(), "threads") != groups.end());
  const int name_width = register_all(arguments);
  if (name_width == 0)
    throw ConfigError("no case is called '" + arguments.only + "' (--only, in group " +
                      arguments.groups.front() + "): run without it to see all");
  Reporter reporter(arguments.json, name_width);
  if (benchmark::RunSpecifiedBenchmarks(&reporter) == 0)
    throw ConfigError("no case is left (by --benchmark_filter): run without it to see all");
  benchmark::Shutdown();
  return reporter.unverified() > 0 ? 1 : 0;
}

}  // namespace

}  // namespace halocline::dtype::bench

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int code = 3;
  try {
    code = halocline::dtype::bench::run(argc, argv);
  } catch (const halocline::ConfigError& error) {
    std::fprintf(stderr, "bench_dtype: %s\n", error.what());
    code = 2;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr,
                 "bench_dtype: out of memory (for the arrays of a case): use fewer --points\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_dtype: %s\n", error.what());
  }
  MPI_Finalize();
  return halocline::dtype::bench::end_output("bench_dtype", code);
}
