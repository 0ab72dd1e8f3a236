// SPDX-License-Identifier: BSD-3-Clause
#include "shock.hpp"

#include <algorithm>

#include "physics/mhd/loop.hpp"

namespace halocline::app::mhd {

namespace {

// Is the base of the rounds. `shock` is kShock of the fields that are read.
template <class T>
struct Round : Kernel<T> {
  T* to;
  T factor;  // c h^2
};

template <class V>
KOKKOS_FORCEINLINE_FUNCTION V larger(const V& a, const V& b) {
  return a > b ? a : b;
}

template <class T>
struct Compression : Round<T> {
  template <class V>
  KOKKOS_FORCEINLINE_FUNCTION void compute(std::int64_t place) const {
    store<V>(larger<V>(V{}, -this->template div_u<V>(place)), this->to + place);
  }
};

template <class T>
struct Maximum : Round<T> {
  static constexpr int kReach = 2;
  template <class V>
  KOKKOS_FORCEINLINE_FUNCTION void compute(std::int64_t place) const {
    const auto& s = this->strides;
    V out = load<V>(this->shock + place);
    for (int z = -kReach; z <= kReach; ++z)
      for (int y = -kReach; y <= kReach; ++y) {
        const T* const row = this->shock + place + y * s.y + z * s.z;
        for (int x = -kReach; x <= kReach; ++x) out = larger(out, load<V>(row + x * s.x));
      }
    store<V>(out, this->to + place);
  }
};

template <class T>
struct Mean : Round<T> {
  template <class V>
  KOKKOS_FORCEINLINE_FUNCTION void compute(std::int64_t place) const {
    constexpr T kWeights[] = {T(70) / 180, T(45) / 180, T(9) / 180, T(1) / 180};
    const auto& s = this->strides;
    V sum{};
    for (int z = -kRadius; z <= kRadius; ++z) {
      V plane{};
      for (int y = -kRadius; y <= kRadius; ++y)
        plane =
            plane + kWeights[y < 0 ? -y : y] *
                        second(Around<V>{this->shock + place + y * s.y + z * s.z}, s.x, kWeights);
      sum = sum + kWeights[z < 0 ? -z : z] * plane;
    }
    store<V>(this->factor * sum, this->to + place);
  }
};

}  // namespace

template <class T>
void find_shocks(const Domain& domain, const Parameters& parameters,
                 const std::array<double, 3>& spacing, ShockRound round, const FieldSet<T>& from,
                 const FieldSet<T>& to) {
  const std::array whole{domain.halo.interior()};
  const double h = *std::min_element(spacing.begin(), spacing.end());
  on_space_of(from, [&]<class Space>(Space space) {
    const auto compute = [&]<class Body>(Loop<T, Body> kernel) {
      set_up(kernel, domain, parameters, spacing, from);
      kernel.shock = shock_address(from, domain);
      kernel.to = shock_address(to, domain);
      kernel.factor = static_cast<T>(parameters.shock * h * h);
      start_loop<Space>(kernel, whole);
    };
    switch (round) {
      case ShockRound::compression:
        compute(Loop<T, Compression<T>>{});
        break;
      case ShockRound::maximum:
        compute(Loop<T, Maximum<T>>{});
        break;
      case ShockRound::mean:
        compute(Loop<T, Mean<T>>{});
        break;
    }
    space.fence("halocline::mhd::find_shocks");
  });
}

#define HALOCLINE_INSTANTIATE(T)                                                            \
  template void find_shocks(const Domain&, const Parameters&, const std::array<double, 3>&, \
                            ShockRound, const FieldSet<T>&, const FieldSet<T>&);
HALOCLINE_INSTANTIATE(double)
HALOCLINE_INSTANTIATE(float)
#undef HALOCLINE_INSTANTIATE

}  // namespace halocline::app::mhd
