// SPDX-License-Identifier: BSD-3-Clause
#include "measure.hpp"

#include <cmath>

#include "physics/mhd/kernel.hpp"
#include "support/mpi_check.hpp"

namespace halocline::app::mhd {

namespace {

// Holds sums and maxima over points. A minimum is the maximum of the negative numbers.
struct Totals {
  enum Sum { u2, b2, va2, mass, px, py, pz, kinetic, thermal, sums };
  enum Max { u, minus_u, b, minus_b, va, minus_va, div_b, maxima };
  double sum[sums], max[maxima];

  KOKKOS_FUNCTION void clear() {
    for (auto& one : sum) one = 0;
    for (auto& one : max) one = -Kokkos::Experimental::infinity_v<double>;
  }
  KOKKOS_FUNCTION void raise(Max which, double value) {
    // A comparison with NaN is false.
    if (!(value <= max[which]))
      max[which] = value == value ? value : Kokkos::Experimental::infinity_v<double>;
  }
  KOKKOS_FUNCTION void add(const Totals& other) {
    for (int i = 0; i < sums; ++i) sum[i] += other.sum[i];
    for (int i = 0; i < maxima; ++i)
      if (other.max[i] > max[i]) max[i] = other.max[i];
  }
};

template <class T>
struct Survey : Kernel<T> {
  using value_type = Totals;  // names that Kokkos looks for
  double energy_per_mass;     // thermal, at T0
  double by_mu0;

  KOKKOS_FUNCTION void init(Totals& totals) const { totals.clear(); }
  KOKKOS_FUNCTION void join(Totals& totals, const Totals& other) const { totals.add(other); }

  KOKKOS_FUNCTION void operator()(std::int64_t i, Totals& totals) const {
    const auto place = this->Kernel<T>::place(i);
    const double rho = exponential<T>(this->around(kLnRho, place)[0]);
    const double u[] = {this->around(kUx, place)[0], this->around(kUy, place)[0],
                        this->around(kUz, place)[0]};
    const double u2 = u[0] * u[0] + u[1] * u[1] + u[2] * u[2];
    const auto b = this->b(place);
    const double b2 = dot(b, b), va2 = b2 * by_mu0 / rho;
    totals.sum[Totals::u2] += u2;
    totals.sum[Totals::b2] += b2;
    totals.sum[Totals::va2] += va2;
    totals.sum[Totals::mass] += rho;
    for (int axis = 0; axis < 3; ++axis) totals.sum[Totals::px + axis] += rho * u[axis];
    totals.sum[Totals::kinetic] += rho * u2 / 2;
    totals.sum[Totals::thermal] += rho * energy_per_mass * this->temperature_ratio(place);
    const double speeds[] = {Kokkos::sqrt(u2), Kokkos::sqrt(b2), Kokkos::sqrt(va2)};
    for (int which = 0; which < 3; ++which) {
      totals.raise(static_cast<Totals::Max>(2 * which), speeds[which]);
      totals.raise(static_cast<Totals::Max>(2 * which + 1), -speeds[which]);
    }
    totals.raise(Totals::div_b, Kokkos::abs(static_cast<double>(div_b(place))));
  }

  // Takes the first differences of B, which is itself made of first differences of A. A component
  // of B differentiates A across its own axis alone. All of B would read beyond the ghosts.
  KOKKOS_FUNCTION T div_b(std::int64_t place) const {
    if (!this->terms.magnetic) return 0;
    const std::int64_t next[] = {this->strides.x, this->strides.y, this->strides.z};
    const auto component = [&](int axis, std::int64_t at) {
      const int second = (axis + 1) % 3, third = (axis + 2) % 3;
      const auto a = [&](int of) { return this->around(static_cast<Field>(kAx + of), at); };
      return first(a(third), next[second], this->weights.first[second]) -
             first(a(second), next[third], this->weights.first[third]);
    };
    T out = 0;
    for (int axis = 0; axis < 3; ++axis)
      for (int k = 1; k <= kRadius; ++k)
        out += this->weights.first[axis][k - 1] *
               (component(axis, place + k * next[axis]) - component(axis, place - k * next[axis]));
    return out;
  }
};

}  // namespace

template <class T>
std::vector<double> measure(const Domain& domain, const Parameters& parameters,
                            const std::array<double, 3>& spacing, const FieldSet<T>& fields,
                            MPI_Comm comm) {
  Survey<T> kernel{};
  const auto box = domain.halo.interior();
  set_up(kernel, domain, parameters, spacing, fields);
  set_box(kernel, box);
  kernel.energy_per_mass = parameters.cp / parameters.gamma * parameters.t0;
  kernel.by_mu0 = 1 / parameters.mu0;
  Totals totals;
  on_space_of(fields, [&]<class Space>(Space) {
    Kokkos::parallel_reduce(
        "halocline::mhd::measure",
        Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(0, box.points()), kernel,
        totals);
  });
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, totals.sum, Totals::sums, MPI_DOUBLE, MPI_SUM, comm));
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, totals.max, Totals::maxima, MPI_DOUBLE, MPI_MAX, comm));
  double points = 1, volume = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    points *= static_cast<double>(domain.decomposition.global()[axis]);
    volume *= spacing[axis];
  }
  const auto& [sum, max] = totals;
  const auto rms = [&](Totals::Sum which) { return std::sqrt(sum[which] / points); };
  const double kinetic = sum[Totals::kinetic] * volume, thermal = sum[Totals::thermal] * volume;
  const double magnetic = sum[Totals::b2] / 2 / parameters.mu0 * volume;
  return {-max[Totals::minus_u],
          rms(Totals::u2),
          max[Totals::u],
          -max[Totals::minus_b],
          rms(Totals::b2),
          max[Totals::b],
          -max[Totals::minus_va],
          rms(Totals::va2),
          max[Totals::va],
          sum[Totals::mass] * volume,
          sum[Totals::px] * volume,
          sum[Totals::py] * volume,
          sum[Totals::pz] * volume,
          kinetic,
          thermal,
          magnetic,
          kinetic + thermal + magnetic,
          max[Totals::div_b]};
}

#define HALOCLINE_INSTANTIATE(T)                                                         \
  template std::vector<double> measure(const Domain&, const Parameters&,                 \
                                       const std::array<double, 3>&, const FieldSet<T>&, \
                                       MPI_Comm);
HALOCLINE_INSTANTIATE(double)
HALOCLINE_INSTANTIATE(float)
#undef HALOCLINE_INSTANTIATE

}  // namespace halocline::app::mhd
