// SPDX-License-Identifier: BSD-3-Clause
#include "waves.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "field_views.hpp"
#include "support/mpi_check.hpp"

namespace halocline::app {

namespace {

// Computes a part of a unit wave at a point from global coordinates alone.
struct WaveValue {
  AxisWave along[3];
  double phase;

  explicit WaveValue(const Wave& wave)
      : along{wave.along[0], wave.along[1], wave.along[2]}, phase(wave.phase) {}

  KOKKOS_INLINE_FUNCTION double operator()(const ElementMap::Place& p) const {
    const std::int64_t at[3] = {p.x, p.y, p.z};
    double turns = 0, mirrored = 1;
    for (int axis = 0; axis < 3; ++axis) {
      const auto& wave = along[axis];
      const double of_axis = static_cast<double>(wave.number) *
                             static_cast<double>(at[axis] - wave.centre) /
                             static_cast<double>(wave.period);
      if (wave.form == AxisWave::Form::travelling)
        turns += of_axis;
      else if (wave.form == AxisWave::Form::even)
        mirrored *= Kokkos::cos(2 * std::numbers::pi * of_axis);
      else
        mirrored *= Kokkos::sin(2 * std::numbers::pi * of_axis);
    }
    turns += phase;
    const double angle = 2 * std::numbers::pi * (turns - Kokkos::floor(turns));
    return mirrored * (p.part == 0 ? Kokkos::cos(angle) : Kokkos::sin(angle));
  }
};

// Holds a field's wave and its amplitude after some substeps.
struct FieldWave {
  WaveValue value;
  double amplitude;
};
using FieldWaves = Kokkos::View<const FieldWave*, HostSpace::memory_space>;

FieldWaves field_waves(const Domain& domain, const StencilSpec& spec, double diffusion_number,
                       std::int64_t substeps) {
  Kokkos::View<FieldWave*, HostSpace::memory_space> waves(
      Kokkos::view_alloc(Kokkos::WithoutInitializing, "halocline::field_waves"),
      static_cast<std::size_t>(domain.fields));
  for (int field = 0; field < domain.fields; ++field) {
    const auto wave = field_wave(field, domain);
    waves[static_cast<std::size_t>(field)] = {
        WaveValue(wave),
        std::pow(damping(spec, wave, diffusion_number), static_cast<double>(substeps))};
  }
  return waves;
}

}  // namespace

template <class T>
void set_wave(const Domain& domain, const FieldSet<T>& fields) {
  const auto waves = field_waves(domain, stencil_spec(Stencil::heat3), 0, 0);
  for_each_element(
      "halocline::set_wave", domain, fields, [=](T& element, const ElementMap::Place& place) {
        element = place.owned || place.outside ? static_cast<T>(waves(place.field).value(place))
                                               : std::numeric_limits<T>::quiet_NaN();
      });
}

template <class T>
void set_outer_ghosts(const Domain& domain, const FieldSet<T>& fields, const StencilSpec& spec,
                      double diffusion_number, std::int64_t substeps) {
  if (!domain.decomposition.has_open_axis()) return;
  const auto waves = field_waves(domain, spec, diffusion_number, substeps);
  for_each_element(
      "halocline::set_outer_ghosts", domain, fields,
      [=](T& element, const ElementMap::Place& place) {
        if (place.outside)
          element = static_cast<T>(waves(place.field).amplitude * waves(place.field).value(place));
      });
}

template <class T>
SolutionCheck check_wave(const Domain& domain, const FieldSet<T>& fields, const StencilSpec& spec,
                         double diffusion_number, std::int64_t substeps, MPI_Comm comm) {
  const auto waves = field_waves(domain, spec, diffusion_number, substeps);
  std::vector<double> deviation(static_cast<std::size_t>(domain.fields));
  const std::int64_t together = domain.elements_per_point(), parts = domain.parts;
  for (int field = 0; field < domain.fields; ++field) {
    const int a = domain.layout == Layout::soa ? field : 0;
    const auto view = array_of(fields, a);
    const ElementMap map(domain, a);
    // Each field takes only its own elements, so that all fields together take the time of one
    // pass.
    double worst_of_all = 0;
    Kokkos::parallel_reduce(
        "halocline::check_wave",
        HostPolicy({0, 0, 0},
                   {view.extent_int(0), view.extent_int(1), view.extent_int(2) / together * parts}),
        [=](std::int64_t z, std::int64_t y, std::int64_t i, double& worst) {
          const auto element = i / parts * together + (field - a) * parts + i % parts;
          const auto place = map(z, y, element);
          if (!place.owned) return;
          const double exact = waves(field).amplitude * waves(field).value(place);
          const double off = Kokkos::abs(static_cast<double>(view(z, y, element)) - exact);
          // This form counts a NaN as infinitely far off.
          if (!(off <= worst)) worst = off == off ? off : std::numeric_limits<double>::infinity();
        },
        Kokkos::Max<double>(worst_of_all));
    deviation[static_cast<std::size_t>(field)] = worst_of_all;
  }
  HALOCLINE_MPI(
      MPI_Allreduce(MPI_IN_PLACE, deviation.data(), domain.fields, MPI_DOUBLE, MPI_MAX, comm));

  constexpr double kEpsilon = std::numeric_limits<T>::epsilon();
  const double relative = sizeof(T) == sizeof(double) ? 1e-12 : 1e-5;
  // The first rounding errors have smooth parts, which outlive the wave. They are a few units in
  // the last place of the initial amplitude, which is 1.
  const double least = 16 * kEpsilon / relative;
  double error = 0;
  for (int field = 0; field < domain.fields; ++field) {
    const auto f = static_cast<std::size_t>(field);
    const double off = deviation[f] / std::max(std::abs(waves(f).amplitude), least);
    if (!(off <= error)) error = off == off ? off : std::numeric_limits<double>::infinity();
  }
  const double roundings = 2 * kEpsilon * static_cast<double>(substeps);
  return {error, std::max(relative, roundings)};
}

#define HALOCLINE_INSTANTIATE(T)                                                                   \
  template void set_wave(const Domain&, const FieldSet<T>&);                                       \
  template void set_outer_ghosts(const Domain&, const FieldSet<T>&, const StencilSpec&, double,    \
                                 std::int64_t);                                                    \
  template SolutionCheck check_wave(const Domain&, const FieldSet<T>&, const StencilSpec&, double, \
                                    std::int64_t, MPI_Comm);
HALOCLINE_INSTANTIATE(double)
HALOCLINE_INSTANTIATE(float)
#undef HALOCLINE_INSTANTIATE

}  // namespace halocline::app
