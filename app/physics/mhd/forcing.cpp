// SPDX-License-Identifier: BSD-3-Clause
#include "forcing.hpp"

#include <cmath>
#include <numbers>

#include "physics/mhd/kernel.hpp"

namespace halocline::app::mhd {

namespace {

// Adds a wave to the velocity at the points of a box.
template <class T, class Waves>
struct AddForce : Kernel<T> {
  T* u[3];
  Kokkos::complex<double> f[3];  // amplitude of each component
  Waves waves;
  std::int64_t first_y, first_z;  // of the tables of y and z

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const auto x = this->begin[0] + i % this->extent[0], row = i / this->extent[0];
    const auto y = this->begin[1] + row % this->extent[1];
    const auto z = this->begin[2] + row / this->extent[1];
    const auto wave = waves(x) * waves(first_y + y) * waves(first_z + z);
    const auto place = this->Kernel<T>::place(i);
    for (int a = 0; a < 3; ++a)
      u[a][place] += static_cast<T>(f[a].real() * wave.real() - f[a].imag() * wave.imag());
  }
};

}  // namespace

Forcing::Forcing(const ForcingParameters& parameters, const Domain& domain,
                 const std::array<double, 3>& spacing)
    : parameters_(parameters),
      domain_(domain),
      spacing_(spacing),
      vectors_(shell(parameters.k_min, parameters.k_max)) {
  const auto stored = domain.halo.stored();
  const auto size = static_cast<std::size_t>(stored[0] + stored[1] + stored[2]);
  waves_ = Waves<HostSpace>("halocline::mhd::forcing", size);
  waves_on_device_ = Kokkos::create_mirror_view(DeviceSpace::memory_space(), waves_);
}

void Forcing::prepare(std::int64_t step) {
  if (step == prepared_) return;
  prepared_ = step;
  const auto& global = domain_.decomposition.global();
  Sides sides;
  for (std::size_t axis = 0; axis < 3; ++axis)
    sides[axis] = spacing_[axis] * static_cast<double>(global[axis]);
  Draw draw(parameters_.seed, step);
  wave_ = draw_wave(draw, vectors_, sides);
  std::size_t at = 0;
  for (std::size_t axis = 0; axis < 3; ++axis)
    for (std::int64_t i = 0; i < domain_.halo.stored()[axis]; ++i) {
      const auto point = domain_.owned.begin[axis] + i - domain_.halo.radius[axis];
      // Whole turns are left out before they cost digits.
      const auto part = wave_.waves[axis] * point % global[axis];
      const double angle =
          2 * std::numbers::pi * static_cast<double>(part) / static_cast<double>(global[axis]) +
          (axis == 0 ? wave_.phase : 0);
      waves_(at++) = Kokkos::complex<double>(std::cos(angle), std::sin(angle));
    }
  Kokkos::deep_copy(waves_on_device_, waves_);
}

template <class T>
void Forcing::start(const Parameters& parameters, double dt, const FieldSet<T>& fields,
                    std::span<const comm::Box> boxes) const {
  const auto launch = [&]<class Space>(Space, const auto& waves) {
    AddForce<T, std::remove_cvref_t<decltype(waves)>> kernel{};
    set_up(kernel, domain_, parameters, spacing_, fields);
    T* addresses[kFields];
    set_addresses(fields, domain_, parameters.terms, addresses);
    const double sigma = parameters_.helicity;
    const double size = parameters_.strength * parameters.cs0 *
                        std::sqrt(wave_.k * parameters.cs0 * dt / (1 + sigma * sigma));
    for (int a = 0; a < 3; ++a) {
      const auto i = static_cast<std::size_t>(a);
      kernel.u[a] = addresses[kUx + a];
      kernel.f[a] = Kokkos::complex<double>(size * wave_.e[i], size * sigma * wave_.ke[i]);
    }
    kernel.waves = waves;
    kernel.first_y = domain_.halo.stored()[0];
    kernel.first_z = kernel.first_y + domain_.halo.stored()[1];
    for (const auto& box : boxes) {
      set_box(kernel, box);
      Kokkos::parallel_for(
          "halocline::mhd::forcing",
          Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(0, box.points()), kernel);
    }
  };
  on_space_of(fields, [&]<class Space>(Space space) {
    if constexpr (std::is_same_v<Space, HostSpace>)
      launch(space, waves_);
    else
      launch(space, waves_on_device_);
  });
}

template void Forcing::start(const Parameters&, double, const FieldSet<double>&,
                             std::span<const comm::Box>) const;
template void Forcing::start(const Parameters&, double, const FieldSet<float>&,
                             std::span<const comm::Box>) const;

}  // namespace halocline::app::mhd
