// SPDX-License-Identifier: BSD-3-Clause
// Makes magnetohydrodynamics a physics of `run`: its parameters, its initial state, its time step.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "field_views.hpp"
#include "physics.hpp"
#include "physics/mhd/mhd.hpp"
#include "support/error.hpp"
#include "support/mpi_check.hpp"

namespace halocline::app {

namespace {

using mhd::kFields;

constexpr double kAny = -std::numeric_limits<double>::infinity();
constexpr double kAboveZero = std::numeric_limits<double>::min();
constexpr mhd::Parameters kUsual;

constexpr std::array kParameters{
    PhysicsParameter{"spacing", "distance of points (length)", 2 * std::numbers::pi / 128,
                     kAboveZero},
    PhysicsParameter{"dt", "time step; 0: the longest that is stable (time)", 0, 0},
    PhysicsParameter{"amplitude", "largest velocity and potential at the begin, about", 0.2, 0},
    PhysicsParameter{"gamma", "adiabatic index", kUsual.gamma, kAboveZero},
    PhysicsParameter{"cp", "heat capacity at constant pressure (energy / mass / temperature)",
                     kUsual.cp, kAboveZero},
    PhysicsParameter{"cs0", "speed of sound at lnrho0 and entropy 0 (length / time)", kUsual.cs0,
                     0},
    PhysicsParameter{"lnrho0", "logarithm of the reference density", kUsual.lnrho0, kAny},
    PhysicsParameter{"t0", "temperature at lnrho0 and entropy 0", kUsual.t0, kAboveZero},
    PhysicsParameter{"mu0", "magnetic permeability", kUsual.mu0, kAboveZero},
    PhysicsParameter{"nu", "kinematic viscosity (length^2 / time)", kUsual.nu, 0},
    PhysicsParameter{"zeta", "bulk viscosity (length^2 / time)", kUsual.zeta, 0},
    PhysicsParameter{"eta", "magnetic diffusivity (length^2 / time)", kUsual.eta, 0},
    PhysicsParameter{"conduction", "heat conductivity K", kUsual.conduction, 0},
    PhysicsParameter{"b0x", "uniform field along x", 0, kAny},
    PhysicsParameter{"b0y", "uniform field along y", 0, kAny},
    PhysicsParameter{"b0z", "uniform field along z", 0, kAny},
    PhysicsParameter{"astaroth-bulk",
                     "1: bulk viscosity as Astaroth has it, without its force on "
                     "density gradients",
                     0, 0},
};

double parameter(const Config& config, std::string_view name) {
  if (const auto found = config.parameters.find("mhd." + std::string(name));
      found != config.parameters.end())
    return found->second;
  return std::find_if(kParameters.begin(), kParameters.end(),
                      [&](const auto& one) { return one.name == name; })
      ->usual;
}

mhd::Parameters parameters_of(const Config& config) {
  const auto get = [&](std::string_view name) { return parameter(config, name); };
  return {.gamma = get("gamma"),
          .cp = get("cp"),
          .cs0 = get("cs0"),
          .lnrho0 = get("lnrho0"),
          .t0 = get("t0"),
          .mu0 = get("mu0"),
          .nu = get("nu"),
          .zeta = get("zeta"),
          .eta = get("eta"),
          .conduction = get("conduction"),
          .b0 = {get("b0x"), get("b0y"), get("b0z")},
          .astaroth_bulk_viscosity = get("astaroth-bulk") != 0};
}

PhysicsInfo mhd_info(const Config& config) {
  if (config.fields != kFields)
    throw ConfigError("fields are not those of mhd (fields " + std::to_string(config.fields) +
                      "): leave fields out, mhd has 8");
  if (config.stages != 1)
    throw ConfigError("stages are those of mhd (stages " + std::to_string(config.stages) +
                      "): leave stages out, mhd has 3");
  if (!config.periodic)
    throw ConfigError("mhd has no open boundaries yet (periodic false): use periodic = true");
  const double h = parameter(config, "spacing");
  return {.fields = {"lnrho", "ux", "uy", "uz", "ax", "ay", "az", "s"},
          .radius = mhd::kRadius,
          .substeps = mhd::Substep::kOfStep,
          .needs = [](int field) { return mhd::needed_neighbors(static_cast<mhd::Field>(field)); },
          .chooses_steps = parameter(config, "dt") == 0,
          .spacing = {h, h, h}};
}

template <class T>
class Mhd final : public Physics<T> {
 public:
  Mhd(const Config& config, const Domain& domain)
      : domain_(domain),
        parameters_(parameters_of(config)),
        amplitude_(parameter(config, "amplitude")),
        fixed_dt_(parameter(config, "dt")),
        now_{0, {0, fixed_dt_}},
        next_(now_) {
    spacing_.fill(parameter(config, "spacing"));
  }

  int parts() const override { return 1; }

  // Sets smooth waves in all fields, which decay and become turbulent.
  void set_initial(const FieldSet<T>& fields) const override {
    const auto& global = domain_.decomposition.global();
    for_each_element(
        "halocline::mhd::set_initial", domain_, fields,
        [=, a = amplitude_](T& element, const ElementMap::Place& p) {
          const auto turns = [](std::int64_t i, std::int64_t n) {
            return 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n);
          };
          const double x = turns(p.x, global[0]), y = turns(p.y, global[1]);
          const double z = turns(p.z, global[2]);
          const double all[kFields] = {a * std::sin(x + y) + a / 2 * std::cos(y - z),
                                       a * std::sin(y + z + .3) + a * std::cos(x),
                                       a * std::cos(z + x + .7) + a * std::sin(y + .2),
                                       a * std::sin(x + y + 1.1) + a * std::sin(z + .5),
                                       a * std::sin(y + z + .2),
                                       a * std::cos(x + z),
                                       a * std::sin(x - y + .4),
                                       a / 2 * std::sin(x + z)};
          element = p.owned ? static_cast<T>(all[p.field]) : std::numeric_limits<T>::quiet_NaN();
        });
  }

  void set_outer_ghosts(const FieldSet<T>&, std::int64_t) const override {}

  void start(std::int64_t substep, const FieldSet<T>& in, const FieldSet<T>& out, int,
             std::span<const comm::Box> boxes) const override {
    const mhd::Substep now{static_cast<int>(substep % mhd::Substep::kOfStep), clock(substep).dt};
    mhd::start_substep(domain_, parameters_, spacing_, now, in, out, boxes);
  }
  void finish(const FieldSet<T>& out) const override { mhd::finish_substep(out); }

  // Chooses the next step from the fields before the last substep of a step. With overlap, a step
  // has begun before its first ghosts arrive.
  void observe(std::int64_t substep, const FieldSet<T>& in, MPI_Comm comm) override {
    if ((substep + 1) % mhd::Substep::kOfStep != 0) return;
    const double dt =
        fixed_dt_ > 0 ? fixed_dt_ : mhd::longest_step(domain_, parameters_, spacing_, in, comm);
    now_ = next_;
    next_ = {substep + 1, {substep < 0 ? 0 : now_.clock.time + now_.clock.dt, dt}};
  }

  Clock clock(std::int64_t substep) const override {
    return substep < next_.begin ? now_.clock : next_.clock;
  }
  std::vector<double> state() const override {
    return {static_cast<double>(next_.begin), next_.clock.time, next_.clock.dt};
  }
  void restore(std::span<const double> state) override {
    next_ = {static_cast<std::int64_t>(state[0]), {state[1], state[2]}};
    now_ = next_;
  }
  // The step that was chosen with the old parameters may be too long for the new ones.
  void reload(const Config& config, const FieldSet<T>& fields, MPI_Comm comm) override {
    parameters_ = parameters_of(config);
    if (fixed_dt_ == 0)
      next_.clock.dt = mhd::longest_step(domain_, parameters_, spacing_, fields, comm);
  }
  std::vector<double> measure(const FieldSet<T>&, MPI_Comm) const override { return {}; }

  std::optional<SolutionCheck> check(const FieldSet<T>& fields, std::int64_t,
                                     MPI_Comm comm) const override {
    std::int64_t wrong = 0;
    for (int a = 0; a < fields.arrays(); ++a) {
      const ElementMap map(domain_, a);
      const auto view = array_of(fields, a);
      wrong += reduce_array<T, Kokkos::Sum<std::int64_t>>(
          "halocline::mhd::check", view,
          [=](std::int64_t z, std::int64_t y, std::int64_t e, std::int64_t& sum) {
            sum += map(z, y, e).owned && !Kokkos::isfinite(view(z, y, e));
          });
    }
    HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT64_T, MPI_SUM, comm));
    if (wrong == 0) return std::nullopt;
    return SolutionCheck{std::numeric_limits<double>::infinity(), 0};
  }

 private:
  const Domain& domain_;
  mhd::Parameters parameters_;
  std::array<double, 3> spacing_;
  double amplitude_, fixed_dt_;
  // Holds the step that begins with a substep. The next step is chosen before the last one is
  // complete.
  struct Step {
    std::int64_t begin;
    Clock clock;
  } now_, next_;
};

template <class T>
std::unique_ptr<Physics<T>> make_mhd(const Config& config, const Domain& domain) {
  return std::make_unique<Mhd<T>>(config, domain);
}

}  // namespace

extern const PhysicsKind kMhd{"mhd",           "compressible magnetohydrodynamics, as Astaroth",
                              mhd_info,        make_mhd<double>,
                              make_mhd<float>, kParameters};

}  // namespace halocline::app
