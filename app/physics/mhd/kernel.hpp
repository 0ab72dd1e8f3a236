// SPDX-License-Identifier: BSD-3-Clause
// Shows fields to kernels on the points of a box.
#pragma once

#include <algorithm>
#include <array>
#include <type_traits>

#include "field_views.hpp"
#include "physics/mhd/mhd.hpp"
#include "support/contract.hpp"

namespace halocline::app::mhd {

/// Is the base of kernels on the points of one box.
template <class T>
struct Kernel {
  const T* in[kFields];  ///< first stored point of each field
  const T* shock;        ///< first stored point of kShock, in `out`
  Strides strides;
  Weights<T> weights;
  Constants<T> constants;
  Terms terms;
  std::int64_t begin[3], extent[3];  ///< of the box, stored coordinates

  /// Returns the place of a point of the box, in elements from the first stored point.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t place(std::int64_t x, std::int64_t y,
                                                 std::int64_t z) const {
    return (begin[0] + x) * strides.x + (begin[1] + y) * strides.y + (begin[2] + z) * strides.z;
  }
  /// Returns the place of the point with this number in the box, x first.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t place(std::int64_t number) const {
    const auto x = number % extent[0], row = number / extent[0];
    return place(x, row % extent[1], row / extent[1]);
  }
  KOKKOS_FORCEINLINE_FUNCTION Around<T> around(Field field, std::int64_t place) const {
    return {in[field] + place};
  }
  /// Returns B at a place, or 0 without a magnetic field.
  KOKKOS_FORCEINLINE_FUNCTION Vec3<T> b(std::int64_t place) const {
    if (!terms.magnetic) return {};
    return magnetic_field<T>(
        curl<T>(around(kAx, place), around(kAy, place), around(kAz, place), strides, weights),
        constants.b0);
  }
  /// Returns the divergence of the velocity. V is T or Lanes<T>.
  template <class V>
  KOKKOS_FORCEINLINE_FUNCTION V div_u(std::int64_t place) const {
    return first(Around<V>{in[kUx] + place}, strides.x, weights.first[0]) +
           first(Around<V>{in[kUy] + place}, strides.y, weights.first[1]) +
           first(Around<V>{in[kUz] + place}, strides.z, weights.first[2]);
  }
  /// Returns T / T0 at a place.
  KOKKOS_FORCEINLINE_FUNCTION T temperature_ratio(std::int64_t place) const {
    if (!terms.entropy) return 1;
    return exponential<T>(
        log_temperature_ratio<T>(around(kLnRho, place)[0], around(kS, place)[0], constants));
  }
};

/// Sets the addresses of the first stored point of each field. A field without an equation gets
/// that of the density, which no kernel reads in its place.
template <class T, class Address>
void set_addresses(const FieldSet<T>& set, const Domain& domain, const Terms& terms,
                   Address (&out)[kFields]) {
  std::fill(std::begin(out), std::end(out), set.working_address(0));
  int number = 0;
  for (const auto field : fields_of(terms)) {
    out[field] = domain.layout == Layout::soa ? set.working_address(number)
                                              : set.working_address(0) + number;
    ++number;
  }
}

/// Returns the address of the first stored point of the last field, which is kShock if there is
/// one.
template <class T>
T* shock_address(const FieldSet<T>& set, const Domain& domain) {
  const int last = domain.fields - 1;
  return domain.layout == Layout::soa ? set.working_address(last) : set.working_address(0) + last;
}

/// Sets all members of a kernel but `shock` and the box.
template <class T>
void set_up(Kernel<T>& kernel, const Domain& domain, const Parameters& parameters,
            const std::array<double, 3>& spacing, const FieldSet<T>& in) {
  const auto per_point = std::int64_t{domain.elements_per_point()};
  const auto extents = domain.extents_in_memory();
  HALOCLINE_EXPECT(domain.fields == static_cast<int>(stored_fields(parameters).size()));
  HALOCLINE_EXPECT(std::ranges::min(domain.halo.radius) >= kRadius);
  set_addresses(in, domain, parameters.terms, kernel.in);
  kernel.strides = {per_point, per_point * extents[0], per_point * extents[0] * extents[1]};
  kernel.weights = weights<T>(spacing);
  kernel.constants = constants<T>(parameters);
  kernel.terms = parameters.terms;
}

/// Sets the box of a kernel.
template <class T>
void set_box(Kernel<T>& kernel, const comm::Box& box) {
  std::copy(box.begin.begin(), box.begin.end(), kernel.begin);
  std::copy(box.extent.begin(), box.extent.end(), kernel.extent);
}

/// Returns body(space), with the execution space of the fields' memory.
template <class T, class Body>
auto on_space_of(const FieldSet<T>& fields, Body body) {
  if constexpr (!std::is_same_v<DeviceSpace, HostSpace>) {
    if (fields.on_device()) return body(DeviceSpace());
  }
  return body(HostSpace());
}

}  // namespace halocline::app::mhd
