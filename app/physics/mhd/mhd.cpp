// SPDX-License-Identifier: BSD-3-Clause
#include "mhd.hpp"

#include <algorithm>
#include <cmath>

#include "field_views.hpp"
#include "support/contract.hpp"
#include "support/mpi_check.hpp"

namespace halocline::app::mhd {

namespace {

// Rows of a tile, and the most planes. The rows of 7 planes of 8 fields should stay in a core's
// cache while the tile's planes follow each other.
constexpr std::int64_t kTileRows = 16, kMostTilePlanes = 32;

// Computes the points of one box.
template <class T>
struct Kernel {
  const T* in[kFields];
  T* out[kFields];
  Strides strides;
  Weights<T> weights;
  Constants<T> constants;
  comm::Int3 begin, extent;  // of the box, stored coordinates
  T before;                  // weight of the change by the last substep
  T now;                     // weight of the rates

  // Returns the place of a point of the box, in elements from the first stored point.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t place(std::int64_t x, std::int64_t y,
                                                 std::int64_t z) const {
    return (begin[0] + x) * strides.x + (begin[1] + y) * strides.y + (begin[2] + z) * strides.z;
  }

  template <class V>
  KOKKOS_FORCEINLINE_FUNCTION Local<V> local(std::int64_t place) const {
    const T* at[kFields];
    for (int field = 0; field < kFields; ++field) at[field] = in[field] + place;
    return local_values<V>(at, strides, weights);
  }
};

enum class Task { first_substep, later_substep, rates };

template <class T, Task kTask>
struct Advance : Kernel<T> {
  struct Tile {};
  struct Point {};
  std::int64_t tiles_along_y = 1, tile_planes = 1;

  template <class V>
  KOKKOS_FORCEINLINE_FUNCTION void advance(std::int64_t place) const {
    const auto r = rates<V>(this->template local<V>(place), this->constants);
    const V change[kFields] = {r.lnrho, r.u.x, r.u.y, r.u.z, r.a.x, r.a.y, r.a.z, r.s};
    for (int field = 0; field < kFields; ++field) {
      T* const to = this->out[field] + place;
      V next = this->now * change[field];
      if constexpr (kTask != Task::rates) {
        const auto value = load<V>(this->in[field] + place);
        if constexpr (kTask == Task::later_substep)
          next = this->before * (value - load<V>(to)) + next;
        next = value + next;
      }
      store<V>(next, to);
    }
  }

  KOKKOS_FUNCTION void operator()(Point, std::int64_t i) const {
    const auto x = i % this->extent[0], row = i / this->extent[0];
    advance<T>(this->place(x, row % this->extent[1], row / this->extent[1]));
  }

  void operator()(Tile, std::int64_t tile) const {
    const auto y0 = tile % tiles_along_y * kTileRows, z0 = tile / tiles_along_y * tile_planes;
    for (auto z = z0; z < std::min(z0 + tile_planes, this->extent[2]); ++z)
      for (auto y = y0; y < std::min(y0 + kTileRows, this->extent[1]); ++y) {
        std::int64_t x = 0;
        if (this->strides.x == 1)
          for (; x + kLanes<Lanes<T>> <= this->extent[0]; x += kLanes<Lanes<T>>)
            advance<Lanes<T>>(this->place(x, y, z));
        for (; x < this->extent[0]; ++x) advance<T>(this->place(x, y, z));
      }
  }
};

// Sets the addresses of the first stored point of each field.
template <class T, class Address>
void set_addresses(const FieldSet<T>& set, std::int64_t per_point, Address (&out)[kFields]) {
  for (int field = 0; field < kFields; ++field)
    out[field] = per_point == 1 ? set.working_address(field) : set.working_address(0) + field;
}

template <class K, class T>
void set_up(K& kernel, const Domain& domain, const Parameters& parameters,
            const std::array<double, 3>& spacing, const FieldSet<T>& in) {
  const auto per_point = std::int64_t{domain.elements_per_point()};
  const auto stored = domain.halo.stored();
  HALOCLINE_EXPECT(domain.fields == kFields && domain.halo.radius >= kRadius);
  set_addresses(in, per_point, kernel.in);
  kernel.strides = {per_point, per_point * stored[0], per_point * stored[0] * stored[1]};
  kernel.weights = weights<T>(spacing);
  kernel.constants = constants<T>(parameters);
}

template <Task kTask, class ExecutionSpace, class T>
void launch_on(const Domain& domain, const Parameters& parameters,
               const std::array<double, 3>& spacing, double before, double now,
               const FieldSet<T>& in, const FieldSet<T>& out, std::span<const comm::Box> boxes) {
  Advance<T, kTask> kernel{};
  set_up(kernel, domain, parameters, spacing, in);
  set_addresses(out, kernel.strides.x, kernel.out);
  kernel.before = static_cast<T>(before);
  kernel.now = static_cast<T>(now);
  constexpr bool kTiles = std::is_same_v<ExecutionSpace, HostSpace>;
  using Step =
      std::conditional_t<kTiles, typename decltype(kernel)::Tile, typename decltype(kernel)::Point>;
  for (const auto& box : boxes) {
    if (box.points() == 0) continue;
    kernel.begin = box.begin;
    kernel.extent = box.extent;
    kernel.tiles_along_y = (box.extent[1] + kTileRows - 1) / kTileRows;
    // Each thread gets a few tiles, so that none waits long for the last one.
    constexpr std::int64_t kTilesPerThread = 4;
    kernel.tile_planes = std::clamp<std::int64_t>(
        kernel.tiles_along_y * box.extent[2] / (kTilesPerThread * HostSpace().concurrency()), 1,
        kMostTilePlanes);
    const auto steps = kTiles ? kernel.tiles_along_y *
                                    ((box.extent[2] + kernel.tile_planes - 1) / kernel.tile_planes)
                              : box.points();
    Kokkos::parallel_for(
        "halocline::mhd",
        Kokkos::RangePolicy<ExecutionSpace, Step, Kokkos::IndexType<std::int64_t>>(0, steps),
        kernel);
  }
}

template <Task kTask, class T>
void launch(const Domain& domain, const Parameters& parameters,
            const std::array<double, 3>& spacing, double before, double now, const FieldSet<T>& in,
            const FieldSet<T>& out, std::span<const comm::Box> boxes) {
  if constexpr (!std::is_same_v<DeviceSpace, HostSpace>) {
    if (in.on_device())
      return launch_on<kTask, DeviceSpace>(domain, parameters, spacing, before, now, in, out,
                                           boxes);
  }
  launch_on<kTask, HostSpace>(domain, parameters, spacing, before, now, in, out, boxes);
}

// Finds the largest speed of waves and the largest 1 / density of the owned points. A NaN counts as
// infinite.
template <class T>
struct Fastest : Kernel<T> {
  KOKKOS_FUNCTION void operator()(std::int64_t i, T& speed, T& by_rho) const {
    const auto x = i % this->extent[0], row = i / this->extent[0];
    const auto place = this->place(x, row % this->extent[1], row / this->extent[1]);
    const auto at = [&](Field field) { return Around<T>{this->in[field] + place}; };
    const auto& c = this->constants;
    const T lnrho = at(kLnRho)[0];
    const T one_by_rho = exponential<T>(-lnrho);
    const T cs_squared =
        c.cs0_squared * exponential<T>(log_temperature_ratio<T>(lnrho, at(kS)[0], c));
    const auto b =
        magnetic_field<T>(curl<T>(at(kAx), at(kAy), at(kAz), this->strides, this->weights), c.b0);
    const Vec3<T> u{at(kUx)[0], at(kUy)[0], at(kUz)[0]};
    const T fast =
        Kokkos::sqrt(dot(u, u)) + Kokkos::sqrt(cs_squared + dot(b, b) * one_by_rho * c.by_mu0);
    // A comparison with NaN is false.
    if (!(fast <= speed)) speed = fast == fast ? fast : Kokkos::Experimental::infinity_v<T>;
    if (!(one_by_rho <= by_rho)) by_rho = one_by_rho;
  }
};

template <class ExecutionSpace, class T>
std::array<double, 2> fastest_on(const Domain& domain, const Parameters& parameters,
                                 const std::array<double, 3>& spacing, const FieldSet<T>& in) {
  Fastest<T> kernel{};
  set_up(kernel, domain, parameters, spacing, in);
  const auto box = domain.halo.interior();
  kernel.begin = box.begin;
  kernel.extent = box.extent;
  T speed = 0, by_rho = 0;
  Kokkos::parallel_reduce(
      "halocline::mhd::longest_step",
      Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(0, box.points()), kernel,
      Kokkos::Max<T>(speed), Kokkos::Max<T>(by_rho));
  return {static_cast<double>(speed), static_cast<double>(by_rho)};
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

comm::DirectionSet needed_neighbors(Field field) {
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
  constexpr double kAlpha[] = {0, -5.0 / 9, -153.0 / 128}, kBeta[] = {1.0 / 3, 15.0 / 16, 8.0 / 15};
  const auto stage = static_cast<std::size_t>(substep.stage);
  const double now = kBeta[stage] * substep.dt;
  if (stage == 0)
    return launch<Task::first_substep>(domain, parameters, spacing, 0, now, in, out, boxes);
  // The method keeps w = alpha w + dt rates. The w of the last substep is (in - out) / beta.
  const double before = kBeta[stage] * kAlpha[stage] / kBeta[stage - 1];
  launch<Task::later_substep>(domain, parameters, spacing, before, now, in, out, boxes);
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
  launch<Task::rates>(domain, parameters, spacing, 0, 1, in, out,
                      std::span<const comm::Box>(whole));
  finish_substep(out);
}

template <class T>
double longest_step(const Domain& domain, const Parameters& parameters,
                    const std::array<double, 3>& spacing, const FieldSet<T>& in, MPI_Comm comm) {
  std::array<double, 2> mine{};
  if constexpr (std::is_same_v<DeviceSpace, HostSpace>)
    mine = fastest_on<HostSpace>(domain, parameters, spacing, in);
  else
    mine = in.on_device() ? fastest_on<DeviceSpace>(domain, parameters, spacing, in)
                          : fastest_on<HostSpace>(domain, parameters, spacing, in);
  std::array<double, 2> all{};
  HALOCLINE_MPI(MPI_Allreduce(mine.data(), all.data(), 2, MPI_DOUBLE, MPI_MAX, comm));
  const auto& p = parameters;
  const double h = *std::min_element(spacing.begin(), spacing.end());
  // Only if K is not 0: 0 times an infinite 1 / density would be a NaN.
  const double of_heat = p.conduction > 0 ? p.gamma * p.conduction * all[1] / p.cp : 0;
  const double diffusivity = std::max({p.eta, of_heat, p.nu + 0.3 * p.zeta});
  return std::min(0.4 * h / all[0], 0.1 * h * h / diffusivity);
}

#define HALOCLINE_INSTANTIATE(T)                                                               \
  template Constants<T> constants(const Parameters&);                                          \
  template void start_substep(const Domain&, const Parameters&, const std::array<double, 3>&,  \
                              const Substep&, const FieldSet<T>&, const FieldSet<T>&,          \
                              std::span<const comm::Box>);                                     \
  template void finish_substep(const FieldSet<T>&);                                            \
  template void set_rates(const Domain&, const Parameters&, const std::array<double, 3>&,      \
                          const FieldSet<T>&, const FieldSet<T>&);                             \
  template double longest_step(const Domain&, const Parameters&, const std::array<double, 3>&, \
                               const FieldSet<T>&, MPI_Comm);
HALOCLINE_INSTANTIATE(double)
HALOCLINE_INSTANTIATE(float)
#undef HALOCLINE_INSTANTIATE

}  // namespace halocline::app::mhd
