// SPDX-License-Identifier: BSD-3-Clause
// Finds the length of a step from the fields.
#include <algorithm>
#include <limits>

#include "physics/mhd/kernel.hpp"
#include "support/mpi_check.hpp"

namespace halocline::app::mhd {

namespace {

// Finds the largest speed of waves, 1 / density and -div u of the owned points. A NaN counts as
// infinite.
template <class T>
struct Fastest : Kernel<T> {
  KOKKOS_FUNCTION void operator()(std::int64_t i, T& speed, T& by_rho, T& compression) const {
    const auto place = this->Kernel<T>::place(i);
    const auto& c = this->constants;
    const T one_by_rho = exponential<T>(-this->around(kLnRho, place)[0]);
    const T cs_squared = c.cs0_squared * this->temperature_ratio(place);
    const auto b = this->b(place);
    const Vec3<T> u{this->around(kUx, place)[0], this->around(kUy, place)[0],
                    this->around(kUz, place)[0]};
    const T fast =
        Kokkos::sqrt(dot(u, u)) + Kokkos::sqrt(cs_squared + dot(b, b) * one_by_rho * c.by_mu0);
    // A comparison with NaN is false.
    if (!(fast <= speed)) speed = fast == fast ? fast : Kokkos::Experimental::infinity_v<T>;
    if (!(one_by_rho <= by_rho)) by_rho = one_by_rho;
    const T inwards = -this->template div_u<T>(place);
    if (!(inwards <= compression)) compression = inwards;
  }
};

}  // namespace

template <class T>
StepLimits step_limits(const Domain& domain, const Parameters& parameters,
                       const std::array<double, 3>& spacing, const FieldSet<T>& in, MPI_Comm comm) {
  Fastest<T> kernel{};
  set_up(kernel, domain, parameters, spacing, in);
  set_box(kernel, domain.halo.interior());
  T speed = 0, by_rho = 0, compression = 0;
  on_space_of(in, [&]<class Space>(Space) {
    Kokkos::parallel_reduce("halocline::mhd::step_limits",
                            Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(
                                0, domain.halo.interior().points()),
                            kernel, Kokkos::Max<T>(speed), Kokkos::Max<T>(by_rho),
                            Kokkos::Max<T>(compression));
  });
  double all[] = {static_cast<double>(speed), static_cast<double>(by_rho),
                  static_cast<double>(compression)};
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, all, 3, MPI_DOUBLE, MPI_MAX, comm));
  const auto& p = parameters;
  const double h = *std::min_element(spacing.begin(), spacing.end());
  // Only if K is not 0: 0 times an infinite 1 / density would be a NaN.
  const double chi =
      p.terms.entropy && p.conduction > 0 ? p.gamma * p.conduction * all[1] / p.cp : 0;
  const double eta = p.terms.magnetic ? p.eta : 0;
  // No maximum and no mean exceeds the largest compression. It changes within a step, and by the
  // flow that it damps: steps three times as long have been seen to fail.
  // Without shock viscosity a NaN of it must not count twice.
  const double shock = p.shock > 0 ? p.shock * h * h * all[2] : 0;
  const double chosen = std::max({eta, chi, p.nu + 0.3 * p.zeta + shock});
  const double stable = std::max({3 * eta, 3 * chi, 10.0 / 3 * p.nu + p.zeta + 2 * shock});
  return {std::min(0.4 * h / all[0], 0.1 * h * h / chosen),
          std::min(0.6305 * h / all[0], 0.4157 * h * h / stable)};
}

#define HALOCLINE_INSTANTIATE(T)                                                                  \
  template StepLimits step_limits(const Domain&, const Parameters&, const std::array<double, 3>&, \
                                  const FieldSet<T>&, MPI_Comm);
HALOCLINE_INSTANTIATE(double)
HALOCLINE_INSTANTIATE(float)
#undef HALOCLINE_INSTANTIATE

}  // namespace halocline::app::mhd
