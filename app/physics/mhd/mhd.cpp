// SPDX-License-Identifier: BSD-3-Clause
#include "mhd.hpp"

#include <cmath>

#include "physics/mhd/loop.hpp"

namespace halocline::app::mhd {

namespace {

enum class Task { first_substep, later_substep, rates };

// Adds the rates to the fields. Is a template of all that would cost a branch at each point.
template <class T, Task kTask, Terms kTerms>
struct Advance : Kernel<T> {
  T* out[kFields];
  T before, now;

  template <class V>
  KOKKOS_FORCEINLINE_FUNCTION void compute(std::int64_t place) const {
    const T* at[kFields];
    for (int field = 0; field < kFields; ++field) at[field] = this->in[field] + place;
    const auto r =
        rates<kTerms>(local_values<V, kTerms>(at, this->strides, this->weights), this->constants);
    write(kLnRho, r.lnrho, place);
    write(kUx, r.u.x, place);
    write(kUy, r.u.y, place);
    write(kUz, r.u.z, place);
    if constexpr (kTerms.magnetic) {
      write(kAx, r.a.x, place);
      write(kAy, r.a.y, place);
      write(kAz, r.a.z, place);
    }
    if constexpr (kTerms.entropy) write(kS, r.s, place);
  }

  template <class V>
  KOKKOS_FORCEINLINE_FUNCTION void write(Field field, const V& rate, std::int64_t place) const {
    T* const to = out[field] + place;
    V next = now * rate;
    if constexpr (kTask != Task::rates) {
      const auto value = load<V>(this->in[field] + place);
      if constexpr (kTask == Task::later_substep) next = before * (value - load<V>(to)) + next;
      next = value + next;
    }
    store<V>(next, to);
  }
};

// Adds the rate of upwinding to the density, behind Advance. In Advance it would cost 3 % of the
// time even if it is off.
template <class T>
struct Upwind : Kernel<T> {
  T* out[kFields];
  T before, now;

  template <class V>
  KOKKOS_FORCEINLINE_FUNCTION void compute(std::int64_t place) const {
    const auto at = [&](Field field) { return Around<V>{this->in[field] + place}; };
    const Vec3<V> u{at(kUx)[0], at(kUy)[0], at(kUz)[0]};
    T* const to = out[kLnRho] + place;
    store<V>(load<V>(to) + now * upwinding(at(kLnRho), u, this->strides, this->weights), to);
  }
};

// Adds the force and the heat of shock viscosity, behind Advance.
// Force: zeta (grad div u + div u grad lnrho) + div u grad zeta. Heat: ds/dt = zeta (div u)^2 / T.
// zeta lies in the last array of `out`.
template <class T>
struct ShockViscosity : Kernel<T> {
  T* out[kFields];
  T before, now;

  template <class V>
  KOKKOS_FORCEINLINE_FUNCTION void compute(std::int64_t place) const {
    const auto at = [&](Field field) { return Around<V>{this->in[field] + place}; };
    const auto& s = this->strides;
    const auto& w = this->weights;
    const Around<V> zeta{this->shock + place};
    Vec3<V> laplacian, grad_div;
    second_of_vector(at(kUx), at(kUy), at(kUz), s, w, laplacian, grad_div);
    const V div_u = this->template div_u<V>(place);
    const V value = zeta[0];
    const auto force = scaled(value, grad_div + scaled(div_u, gradient(at(kLnRho), s, w))) +
                       scaled(div_u, gradient(zeta, s, w));
    add(kUx, force.x, place);
    add(kUy, force.y, place);
    add(kUz, force.z, place);
    if (!this->terms.entropy) return;
    const auto& c = this->constants;
    const V t0_by_t = exponential<V>(-log_temperature_ratio<V>(at(kLnRho)[0], at(kS)[0], c));
    add(kS, value * div_u * div_u * c.by_t0 * t0_by_t, place);
  }

  template <class V>
  KOKKOS_FORCEINLINE_FUNCTION void add(Field field, const V& rate, std::int64_t place) const {
    T* const to = out[field] + place;
    store<V>(load<V>(to) + now * rate, to);
  }
};

// Says what is computed, beside the equations.
template <class T>
struct Work {
  const Domain& domain;
  const Parameters& parameters;
  const std::array<double, 3>& spacing;
  const FieldSet<T>&in, &out;
  std::span<const comm::Box> boxes;
  double before;  // weight of the change by the last substep
  double now;     // weight of the rates
};

template <class Body, class ExecutionSpace, class T>
void launch_on(const Work<T>& work) {
  Loop<T, Body> kernel{};
  set_up(kernel, work.domain, work.parameters, work.spacing, work.in);
  set_addresses(work.out, work.domain, work.parameters.terms, kernel.out);
  kernel.shock = shock_address(work.out, work.domain);
  kernel.before = static_cast<T>(work.before);
  kernel.now = static_cast<T>(work.now);
  start_loop<ExecutionSpace>(kernel, work.boxes);
}

template <Task kTask, class T>
void launch(const Work<T>& work) {
  on_space_of(work.in, [&]<class Space>(Space) {
    const auto [entropy, magnetic] = work.parameters.terms;
    if (entropy && magnetic)
      launch_on<Advance<T, kTask, Terms{true, true}>, Space>(work);
    else if (entropy)
      launch_on<Advance<T, kTask, Terms{true, false}>, Space>(work);
    else if (magnetic)
      launch_on<Advance<T, kTask, Terms{false, true}>, Space>(work);
    else
      launch_on<Advance<T, kTask, Terms{false, false}>, Space>(work);
    if (work.parameters.upwind) launch_on<Upwind<T>, Space>(work);
    if (work.parameters.shock > 0) launch_on<ShockViscosity<T>, Space>(work);
  });
}

}  // namespace

bool is_ideal_gas(const Parameters& p) {
  const double wanted = (p.gamma - 1) * p.cp * p.t0;
  return std::abs(p.cs0 * p.cs0 - wanted) <= 1e-6 * wanted;
}

template <class T>
Constants<T> constants(const Parameters& p) {
  const auto t = [](double value) { return static_cast<T>(value); };
  return {.gamma_by_cp = t(p.gamma / p.cp),
          .gamma_less_1 = t(p.gamma - 1),
          .by_cp = t(1 / p.cp),
          .cs0_squared = t(p.cs0 * p.cs0),
          .lnrho0 = t(p.lnrho0),
          .by_t0 = t(1 / p.t0),
          .by_mu0 = t(1 / p.mu0),
          .nu = t(p.nu),
          .zeta = t(p.zeta),
          .zeta_of_density = t(p.astaroth_bulk_viscosity ? 0 : p.zeta),
          .eta = t(p.eta),
          .eta_mu0 = t(p.eta * p.mu0),
          .conduction = t(p.conduction),
          .b0 = {t(p.b0[0]), t(p.b0[1]), t(p.b0[2])}};
}

std::vector<Field> fields_of(const Terms& terms) {
  std::vector<Field> out{kLnRho, kUx, kUy, kUz};
  if (terms.magnetic) out.insert(out.end(), {kAx, kAy, kAz});
  if (terms.entropy) out.push_back(kS);
  return out;
}

std::vector<Field> stored_fields(const Parameters& parameters) {
  auto out = fields_of(parameters.terms);
  if (parameters.shock > 0) out.push_back(kShock);
  return out;
}

comm::DirectionSet needed_neighbors(Field field) {
  if (field == kShock) return {};  // it is exchanged by itself
  auto out = comm::DirectionSet::along_at_most(1);
  if (field == kLnRho || field == kS) return out;
  const auto own = static_cast<std::size_t>((field - kUx) % 3);
  comm::for_each_direction([&](comm::Direction direction) {
    const auto axes = std::abs(direction[0]) + std::abs(direction[1]) + std::abs(direction[2]);
    if (axes == 2 && direction[own] != 0) out.insert(direction);
  });
  return out;
}

template <class T>
void start_substep(const Domain& domain, const Parameters& parameters,
                   const std::array<double, 3>& spacing, const Substep& substep,
                   const FieldSet<T>& in, const FieldSet<T>& out,
                   std::span<const comm::Box> boxes) {
  constexpr auto &kAlpha = Substep::kAlpha, &kBeta = Substep::kBeta;
  const auto stage = static_cast<std::size_t>(substep.stage);
  const double now = kBeta[stage] * substep.dt;
  if (stage == 0)
    return launch<Task::first_substep, T>({domain, parameters, spacing, in, out, boxes, 0, now});
  // The method keeps w = alpha w + dt rates. The w of the last substep is (in - out) / beta.
  const double before = kBeta[stage] * kAlpha[stage] / kBeta[stage - 1];
  launch<Task::later_substep, T>({domain, parameters, spacing, in, out, boxes, before, now});
}

template <class T>
void finish_substep(const FieldSet<T>& out) {
  if (out.on_device())
    DeviceSpace().fence("halocline::mhd");
  else
    HostSpace().fence("halocline::mhd");
}

template <class T>
void set_rates(const Domain& domain, const Parameters& parameters,
               const std::array<double, 3>& spacing, const FieldSet<T>& in,
               const FieldSet<T>& out) {
  const std::array whole{domain.halo.interior()};
  launch<Task::rates, T>({domain, parameters, spacing, in, out, whole, 0, 1});
  finish_substep(out);
}

#define HALOCLINE_INSTANTIATE(T)                                                              \
  template Constants<T> constants(const Parameters&);                                         \
  template void start_substep(const Domain&, const Parameters&, const std::array<double, 3>&, \
                              const Substep&, const FieldSet<T>&, const FieldSet<T>&,         \
                              std::span<const comm::Box>);                                    \
  template void finish_substep(const FieldSet<T>&);                                           \
  template void set_rates(const Domain&, const Parameters&, const std::array<double, 3>&,     \
                          const FieldSet<T>&, const FieldSet<T>&);
HALOCLINE_INSTANTIATE(double)
HALOCLINE_INSTANTIATE(float)
#undef HALOCLINE_INSTANTIATE

}  // namespace halocline::app::mhd
