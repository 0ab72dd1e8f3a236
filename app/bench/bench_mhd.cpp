// SPDX-License-Identifier: BSD-3-Clause
// Measures a substep of magnetohydrodynamics on one core, without any exchange. It takes turns with
// its twin, a loop that reads and writes each value as often as the substep has to: both sets of
// fields are read once, one is written.
//
//   bench_mhd [--only=PATTERN] ...    --help lists all options; jobs/local/bench.sh mhd runs it
#include <mpi.h>
#include <sched.h>

#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "dtype/bench/program.hpp"
#include "field_views.hpp"
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

/// Holds two sets of fields in a box of `points`^3 points.
template <class T>
struct Box {
  Domain domain;
  FieldSet<T> in, out;

  Box(std::int64_t points, const mhd::Parameters& parameters)
      : domain(domain_of(points, parameters)), in(domain, nullptr), out(domain, nullptr) {
    for (const auto* set : {&in, &out})
      for (std::int64_t i = 0; i < elements(); ++i)
        set->address(0)[i] = static_cast<T>(0.1 * std::sin(0.01 * static_cast<double>(i)));
  }
  static Domain domain_of(std::int64_t points, const mhd::Parameters& parameters) {
    Config config;
    config.subcommand = Subcommand::compare;
    config.global = {points, points, points};
    config.fields = static_cast<int>(mhd::fields_of(parameters.terms).size());
    config.element = sizeof(T) == 8 ? Element::float64 : Element::float32;
    return make_domain(config, comm::NodeHierarchy(MPI_COMM_SELF));
  }
  // Counts from the first stored point of the first array to the end of the last one.
  std::int64_t elements() const {
    return FieldSet<T>::bytes(domain) / static_cast<std::int64_t>(sizeof(T)) -
           domain.left_padding();
  }
  void compute(const mhd::Parameters& parameters, std::span<const comm::Box> boxes) const {
    mhd::start_substep(domain, parameters, kSpacing, kSubstep, in, out, boxes);
    mhd::finish_substep(out);
  }
};

// Tells if the substep has the same bits in planes of one point, which are not computed in vectors.
template <class T>
bool is_verified(std::int64_t points, const mhd::Parameters& parameters) {
  const Box<T> whole(points, parameters), parts(points, parameters);
  const std::array all{whole.domain.halo.interior()};
  std::vector<comm::Box> planes;
  for (std::int64_t x = 0; x < points; ++x) {
    planes.push_back(all[0]);
    planes.back().begin[0] += x;
    planes.back().extent[0] = 1;
  }
  whole.compute(parameters, all);
  parts.compute(parameters, planes);
  const auto bytes = static_cast<std::size_t>(whole.elements()) * sizeof(T);
  return std::memcmp(whole.out.address(0), parts.out.address(0), bytes) == 0 &&
         std::isfinite(static_cast<double>(*whole.out.address(0)));
}

// Is the twin: the traffic of a substep on as many values as the owned points have.
template <class T>
void read_and_write(const T* in, T* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = T(0.5) * in[i] + T(0.5) * out[i];
}

template <class T>
Row measure(std::int64_t points, const mhd::Parameters& parameters, const Options& options) {
  Row row;
  row.verified = is_verified<T>(points, parameters);
  if (!row.verified) {
    row.note = "differs in planes of one point";
    return row;
  }
  const Box<T> box(points, parameters), twin(points, parameters);
  const std::array all{box.domain.halo.interior()};
  const auto values = all[0].points() * box.domain.fields;
  std::vector<Contender> ways;
  ways.emplace_back("substep", [&](std::int64_t calls) {
    for (; calls > 0; --calls) box.compute(parameters, all);
  });
  ways.emplace_back("memory", [&](std::int64_t calls) {
    for (; calls > 0; --calls) {
      auto* const out = twin.out.address(0);
      read_and_write(twin.in.address(0), out, values);
      asm volatile("" : : "r"(out) : "memory");
    }
  });
  take_turns(ways, effort_of(options, {5, 1e6, 10}, {1, 1e6, 3}));
  row.add("bytes", 3 * values * static_cast<std::int64_t>(sizeof(T)));
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

// Starts Kokkos with one thread, and keeps that on its core.
std::shared_ptr<void> one_thread() {
  auto kokkos = std::make_shared<Kokkos::ScopeGuard>(
      Kokkos::InitializationSettings().set_num_threads(1).set_disable_warnings(true));
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(std::max(sched_getcpu(), 0)), &one);
  sched_setaffinity(0, sizeof one, &one);
  return kokkos;
}

Program program() {
  const auto kokkos = std::make_shared<std::shared_ptr<void>>();
  return {
      .what = "A substep of magnetohydrodynamics on one core beside the least traffic it needs.",
      .groups = {{"substep",
                  "all: 8 fields; memory: each value of both sets is read, and one is written",
                  "substep_ns", "bytes substep_ns memory_ns mega_points_per_s substep_vs_memory",
                  substeps}},
      .start = [kokkos](const Options&) -> dtype::bench::Facts {
        *kokkos = one_thread();
        return {"one thread", {}};
      }};
}

}  // namespace

}  // namespace halocline::app::bench

int main(int argc, char** argv) {
  return halocline::dtype::bench::bench_main("bench_mhd", argc, argv,
                                             halocline::app::bench::program);
}
