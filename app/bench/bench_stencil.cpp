// SPDX-License-Identifier: BSD-3-Clause
// Measures a substep of the stencils on one core, without any exchange. Its twins take turns with
// it:
// - lines: the sum over lines as the definition of the stencil has it, in vectors.
// - loads: reads each value that a sum over lines reads, from the first cache.
// - memory: reads and writes each value as often as the substep has to.
//
//   bench_stencil [--only=PATTERN] ...    --help lists all options; jobs/local/bench.sh stencil
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "one_core.hpp"
#include "physics/heat/advance.hpp"
#include "physics/lanes.hpp"

namespace halocline::app::bench {

namespace {

using dtype::bench::Benchmark;
using dtype::bench::Contender;
using dtype::bench::Options;
using dtype::bench::Program;
using dtype::bench::Row;

constexpr double kDiffusion = 0.01;

template <class T>
void compute(const Box<T>& box, const StencilSpec& spec, std::span<const comm::Box> boxes) {
  for (int array = 0; array < box.domain.arrays(); ++array)
    start_advance(box.domain, spec, kDiffusion, box.in, box.out, array, boxes);
  finish_advance(box.out);
}

/// Sums over lines, as StencilSpec says.
template <class T, int kLineCount, int kRadius>
struct Lines {
  T centre = 0;
  T weights[kLineCount * kRadius];
  std::int64_t offsets[kLineCount * kRadius];

  Lines(const Domain& domain, const StencilSpec& spec) {
    const auto extents = domain.extents_in_memory();
    const std::int64_t x = domain.elements_per_point(), y = x * extents[0], z = y * extents[1];
    double sum = 1;
    for (int line = 0; line < kLineCount; ++line) {
      const auto& step = kLines[static_cast<std::size_t>(line)];
      const double weight = kDiffusion * line_weight(spec, line);
      sum += weight * spec.coefficients[0];
      for (int k = 1; k <= kRadius; ++k) {
        const auto term = line * kRadius + k - 1;
        weights[term] = static_cast<T>(weight * spec.coefficients[static_cast<std::size_t>(k)]);
        offsets[term] = k * (step[0] * x + step[1] * y + step[2] * z);
      }
    }
    centre = static_cast<T>(sum);
  }

  template <std::size_t... kTerm>
  T value(const T* u, std::index_sequence<kTerm...>) const {
    T sum = centre * u[0];
    ((sum += weights[kTerm] * (u[offsets[kTerm]] + u[-offsets[kTerm]])), ...);
    return sum;
  }

  void compute(const Box<T>& box) const {
    const auto self = *this;  // a copy that `to` cannot point into
    const auto owned = box.domain.halo.interior();
    const auto extents = box.domain.extents_in_memory();
    const auto per_point = box.domain.elements_per_point();
    for (int array = 0; array < box.domain.arrays(); ++array)
      for (std::int64_t z = 0; z < owned.extent[2]; ++z)
        for (std::int64_t y = 0; y < owned.extent[1]; ++y) {
          const auto place =
              (((owned.begin[2] + z) * extents[1] + owned.begin[1] + y) * extents[0] +
               owned.begin[0]) *
              per_point;
          const T* from = box.in.address(array) + place;
          T* to = box.out.address(array) + place;
          const auto length = owned.extent[0] * per_point;
#pragma omp simd
          for (std::int64_t i = 0; i < length; ++i)
            to[i] = self.value(from + i, std::make_index_sequence<kLineCount * kRadius>());
        }
  }
};

/// Reads `count` vectors from the first cache.
template <class T>
void load_vectors(const T* memory, std::int64_t count) {
  constexpr int kAtOnce = 8, kValues = kLanes<Lanes<T>>;
  for (std::int64_t i = 0; i < count; i += kAtOnce)
    for (int j = 0; j < kAtOnce; ++j) {
      const auto vector = load<Lanes<T>>(memory + (i + j) % 128 * kValues);
      asm volatile("" : : "x"(vector));
    }
}

// Returns the largest difference from the sum over lines, in units of the last place of 1.
template <class T>
double difference(const Box<T>& one, const Box<T>& other) {
  double out = 0;
  for (std::int64_t i = 0; i < one.elements(); ++i)
    out = std::fmax(out, std::abs(static_cast<double>(one.out.address(0)[i]) -
                                  static_cast<double>(other.out.address(0)[i])));
  return out / static_cast<double>(std::numeric_limits<T>::epsilon());
}

template <class T, int kLineCount, int kRadius>
Row measure(const Config& config, const Options& options) {
  const auto spec = stencil_spec(config.stencil);
  Row row;
  row.verified =
      is_verified<T>(config, [&](const Box<T>& box, auto boxes) { compute<T>(box, spec, boxes); });
  const Box<T> box(config), twin(config), of_lines(config);
  const std::array all{box.domain.halo.interior()};
  const bench::Lines<T, kLineCount, kRadius> lines(box.domain, spec);
  compute<T>(box, spec, all);
  lines.compute(of_lines);
  row.verified = row.verified && difference(box, of_lines) < 10;
  if (!row.verified) {
    row.note = "differs in planes of one point, or from the sum over lines";
    return row;
  }
  const std::vector<T> cached(16384 / sizeof(T), T(1));
  const auto loads = box.values() / kLanes<app::Lanes<T>> * (2 * kLineCount * kRadius + 1);
  const auto way = [](const char* name, auto body) {
    return Contender(name, [body](std::int64_t calls) {
      for (; calls > 0; --calls) body();
    });
  };
  std::vector<Contender> ways{way("substep", [&] { compute<T>(box, spec, all); }),
                              way("lines", [&] { lines.compute(of_lines); }),
                              way("loads", [&] { load_vectors(cached.data(), loads); }),
                              way("memory", [&] { read_and_write(twin); })};
  take_turns(ways, effort_of(options, {5, 1e6, 10}, {1, 1e6, 3}));
  for (const auto& one : ways) row.add_times(one.name(), one.ns());
  row.add("mega_values_per_s", static_cast<double>(box.values()) / row.value("substep_ns") * 1e3);
  for (const std::size_t other : {1, 2, 3})
    row.add("substep_vs_" + ways[other].name(), ratio(ways[0], ways[other]));
  return row;
}

std::vector<Benchmark> substeps(const Options& options) {
  std::vector<Benchmark> out;
  const auto add = [&]<class T, int kLineCount, int kRadius>(const std::string& name,
                                                             Stencil stencil, Layout layout,
                                                             std::int64_t points) {
    Config config;
    config.stencil = stencil;
    config.layout = layout;
    config.global = {points, points, points};
    config.radius = kRadius;
    out.push_back({name + "-" + std::to_string(points),
                   [=, &options] { return measure<T, kLineCount, kRadius>(config, options); }});
  };
  const auto sizes =
      options.smoke ? std::vector<std::int64_t>{12} : std::vector<std::int64_t>{32, 64, 128};
  for (const auto points : sizes) {
    add.operator()<double, 13, 3>("heat13", Stencil::heat13, Layout::soa, points);
    add.operator()<float, 13, 3>("heat13-float", Stencil::heat13, Layout::soa, points);
    add.operator()<double, 13, 3>("heat13-aos", Stencil::heat13, Layout::aos, points);
    add.operator()<double, 9, 3>("heat9", Stencil::heat9, Layout::soa, points);
    add.operator()<double, 3, 3>("heat3", Stencil::heat3, Layout::soa, points);
    add.operator()<double, 13, 1>("point26", Stencil::point26, Layout::soa, points);
  }
  return out;
}

Program program() {
  return program_on_one_core(
      "A substep of each stencil on one core, 8 fields, beside its definition and its bounds.",
      {{"substep",
        "lines: a plain sum over lines; loads: reads what that sum reads, from the first cache; "
        "memory: the least traffic",
        "substep_ns",
        "substep_ns mega_values_per_s substep_vs_lines substep_vs_loads substep_vs_memory",
        substeps}});
}

}  // namespace

}  // namespace halocline::app::bench

int main(int argc, char** argv) {
  return halocline::dtype::bench::bench_main("bench_stencil", argc, argv,
                                             halocline::app::bench::program);
}
