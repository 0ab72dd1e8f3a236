// SPDX-License-Identifier: BSD-3-Clause
#include "mhd.hpp"

#include <cmath>

#include "physics/mhd/kernel.hpp"

namespace halocline::app::mhd {

namespace {

// Rows of a tile, and the most planes. The rows of 7 planes of 8 fields should stay in a core's
// cache while the tile's planes follow each other.
constexpr std::int64_t kTileRows = 16, kMostTilePlanes = 32;

enum class Task { first_substep, later_substep, rates };

// Names what a launch computes, beside its fields.
struct Work {
  Task task;
  double before;  // weight of the change by the last substep
  double now;     // weight of the rates
};

// Is a template of the equations alone, which decide about most of its code.
template <class T, Terms kTerms>
struct Advance : Kernel<T> {
  struct Tile {};
  struct Point {};
  T* out[kFields];
  Task task;
  T before, now;
  bool upwind;
  std::int64_t tiles_along_y = 1, tile_planes = 1;

  template <class V>
  KOKKOS_FORCEINLINE_FUNCTION void advance(std::int64_t place) const {
    const T* at[kFields];
    for (int field = 0; field < kFields; ++field) at[field] = this->in[field] + place;
    const auto local = local_values<V, kTerms>(at, this->strides, this->weights);
    auto r = rates<kTerms>(local, this->constants);
    if (upwind)
      r.lnrho = r.lnrho + upwinding(Around<V>{at[kLnRho]}, local.u, this->strides, this->weights);
    if (task == Task::first_substep) return write<Task::first_substep>(r, place);
    if (task == Task::later_substep) return write<Task::later_substep>(r, place);
    write<Task::rates>(r, place);
  }

  template <Task kTask, class V>
  KOKKOS_FORCEINLINE_FUNCTION void write(const Rates<V>& r, std::int64_t place) const {
    write_field<kTask>(kLnRho, r.lnrho, place);
    write_field<kTask>(kUx, r.u.x, place);
    write_field<kTask>(kUy, r.u.y, place);
    write_field<kTask>(kUz, r.u.z, place);
    if constexpr (kTerms.magnetic) {
      write_field<kTask>(kAx, r.a.x, place);
      write_field<kTask>(kAy, r.a.y, place);
      write_field<kTask>(kAz, r.a.z, place);
    }
    if constexpr (kTerms.entropy) write_field<kTask>(kS, r.s, place);
  }

  template <Task kTask, class V>
  KOKKOS_FORCEINLINE_FUNCTION void write_field(Field field, const V& rate,
                                               std::int64_t place) const {
    T* const to = out[field] + place;
    V next = now * rate;
    if constexpr (kTask != Task::rates) {
      const auto value = load<V>(this->in[field] + place);
      if constexpr (kTask == Task::later_substep) next = before * (value - load<V>(to)) + next;
      next = value + next;
    }
    store<V>(next, to);
  }

  KOKKOS_FUNCTION void operator()(Point, std::int64_t i) const { advance<T>(this->place(i)); }

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

template <Terms kTerms, class ExecutionSpace, class T>
void launch_on(const Domain& domain, const Parameters& parameters,
               const std::array<double, 3>& spacing, const Work& work, const FieldSet<T>& in,
               const FieldSet<T>& out, std::span<const comm::Box> boxes) {
  Advance<T, kTerms> kernel{};
  set_up(kernel, domain, parameters, spacing, in);
  set_addresses(out, domain, parameters.terms, kernel.out);
  kernel.task = work.task;
  kernel.before = static_cast<T>(work.before);
  kernel.now = static_cast<T>(work.now);
  kernel.upwind = parameters.upwind;
  constexpr bool kTiles = std::is_same_v<ExecutionSpace, HostSpace>;
  using Step =
      std::conditional_t<kTiles, typename decltype(kernel)::Tile, typename decltype(kernel)::Point>;
  for (const auto& box : boxes) {
    if (box.points() == 0) continue;
    set_box(kernel, box);
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

template <class T>
void launch(const Domain& domain, const Parameters& parameters,
            const std::array<double, 3>& spacing, const Work& work, const FieldSet<T>& in,
            const FieldSet<T>& out, std::span<const comm::Box> boxes) {
  const auto& [entropy, magnetic] = parameters.terms;
  on_space_of(in, [&, entropy = entropy, magnetic = magnetic]<class Space>(Space) {
    const auto start = [&]<bool kEntropy, bool kMagnetic>() {
      launch_on<Terms{kEntropy, kMagnetic}, Space>(domain, parameters, spacing, work, in, out,
                                                   boxes);
    };
    if (entropy && magnetic) return start.template operator()<true, true>();
    if (entropy) return start.template operator()<true, false>();
    if (magnetic) return start.template operator()<false, true>();
    start.template operator()<false, false>();
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
  constexpr auto &kAlpha = Substep::kAlpha, &kBeta = Substep::kBeta;
  const auto stage = static_cast<std::size_t>(substep.stage);
  const double now = kBeta[stage] * substep.dt;
  if (stage == 0)
    return launch(domain, parameters, spacing, {Task::first_substep, 0, now}, in, out, boxes);
  // The method keeps w = alpha w + dt rates. The w of the last substep is (in - out) / beta.
  const double before = kBeta[stage] * kAlpha[stage] / kBeta[stage - 1];
  launch(domain, parameters, spacing, {Task::later_substep, before, now}, in, out, boxes);
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
  launch(domain, parameters, spacing, {Task::rates, 0, 1}, in, out,
         std::span<const comm::Box>(whole));
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
