// SPDX-License-Identifier: BSD-3-Clause
// Measures a substep of magnetohydrodynamics on one core, without any exchange. It takes turns with
// its twin, a loop that reads and writes each value as often as the substep has to: both sets of
// fields are read once, one is written.
//
//   bench_mhd [--only=PATTERN] ...    --help lists all options; jobs/local/bench.sh mhd runs it
#include <array>
#include <string>
#include <vector>

#include "one_core.hpp"
#include "physics/mhd/mhd.hpp"

namespace halocline::app::bench {

namespace {

using dtype::bench::Benchmark;
using dtype::bench::Contender;
using dtype::bench::Options;
using dtype::bench::Program;
using dtype::bench::Row;

constexpr mhd::Substep kSubstep{2, 1e-3};
constexpr std::array<double, 3> kSpacing{0.1, 0.1, 0.1};

Config config_of(std::int64_t points, const mhd::Parameters& parameters) {
  Config config;
  config.global = {points, points, points};
  config.fields = static_cast<int>(mhd::fields_of(parameters.terms).size());
  return config;
}

template <class T>
void compute(const Box<T>& box, const mhd::Parameters& parameters,
             std::span<const comm::Box> boxes) {
  mhd::start_substep(box.domain, parameters, kSpacing, kSubstep, box.in, box.out, boxes);
  mhd::finish_substep(box.out);
}

template <class T>
Row measure(std::int64_t points, const mhd::Parameters& parameters, const Options& options) {
  Row row;
  const auto config = config_of(points, parameters);
  row.verified = is_verified<T>(
      config, [&](const Box<T>& box, auto boxes) { compute(box, parameters, boxes); });
  if (!row.verified) {
    row.note = "differs in planes of one point";
    return row;
  }
  const Box<T> box(config), twin(config);
  const std::array all{box.domain.halo.interior()};
  std::vector<Contender> ways;
  ways.emplace_back("substep", [&](std::int64_t calls) {
    for (; calls > 0; --calls) compute<T>(box, parameters, all);
  });
  ways.emplace_back("memory", [&](std::int64_t calls) {
    for (; calls > 0; --calls) read_and_write(twin);
  });
  take_turns(ways, effort_of(options, {5, 1e6, 10}, {1, 1e6, 3}));
  row.add("bytes", 3 * box.values() * static_cast<std::int64_t>(sizeof(T)));
  for (const auto& way : ways) row.add_times(way.name(), way.ns());
  row.add("mega_points_per_s",
          static_cast<double>(all[0].points()) / row.value("substep_ns") * 1e3);
  row.add("substep_vs_memory", ratio(ways[0], ways[1]));
  return row;
}

std::vector<Benchmark> substeps(const Options& options) {
  mhd::Parameters all, isothermal, gas, both, upwind;
  isothermal.terms.entropy = both.terms.entropy = false;
  gas.terms.magnetic = both.terms.magnetic = false;
  upwind.upwind = true;
  const std::int64_t points = options.smoke ? 12 : 64;
  const auto name = [&](const char* what) { return std::string(what) + std::to_string(points); };
  const auto of = [&options](auto element, std::int64_t n, const mhd::Parameters& parameters) {
    return [=, &options] { return measure<decltype(element)>(n, parameters, options); };
  };
  std::vector<Benchmark> out{{name("all-"), of(double(), points, all)},
                             {name("upwind-"), of(double(), points, upwind)},
                             {name("isothermal-"), of(double(), points, isothermal)},
                             {name("gas-"), of(double(), points, gas)},
                             {name("isothermal-gas-"), of(double(), points, both)},
                             {name("float-"), of(float(), points, all)}};
  if (!options.smoke) out.push_back({"all-128", of(double(), 128, all)});
  return out;
}

Program program() {
  return program_on_one_core(
      "A substep of magnetohydrodynamics on one core beside the least traffic it needs.",
      {{"substep", "all: 8 fields; memory: each value of both sets is read, and one is written",
        "substep_ns", "bytes substep_ns memory_ns mega_points_per_s substep_vs_memory", substeps}});
}

}  // namespace

}  // namespace halocline::app::bench

int main(int argc, char** argv) {
  return halocline::dtype::bench::bench_main("bench_mhd", argc, argv,
                                             halocline::app::bench::program);
}
