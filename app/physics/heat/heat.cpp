// SPDX-License-Identifier: BSD-3-Clause
// Computes independent heat equations: each field is a plane wave that a stencil damps.
#include <array>
#include <cmath>
#include <string>

#include "physics.hpp"
#include "physics/heat/advance.hpp"
#include "physics/heat/stencil.hpp"
#include "physics/heat/waves.hpp"
#include "support/error.hpp"

namespace halocline::app {

namespace {

// No stencil is stable beyond 2 / 18.2, where 18.2 is the largest eigenvalue of all.
constexpr double kLargestDiffusionNumber = 0.1;

constexpr std::array kHeatParameters{PhysicsParameter{
    "diffusion", "conductivity * time / distance^2 of a substep; 0: by the number of steps", 0, 0}};

double given_diffusion_number(const Config& config) {
  const auto found = config.parameters.find("heat.diffusion");
  return found == config.parameters.end() ? 0 : found->second;
}

PhysicsInfo heat_info(const Config& config) {
  if (const auto given = given_diffusion_number(config); given > kLargestDiffusionNumber)
    throw ConfigError("heat.diffusion is not stable (" + std::to_string(given) +
                      "): give at most " + std::to_string(kLargestDiffusionNumber));
  const auto spec = stencil_spec(config.stencil);
  return {.fields = {},
          .radius = spec.radius(),
          .substeps = config.stages,
          .needs = [needed = needed_neighbors(spec)](int) { return needed; },
          .knows_outer_ghosts = true};
}

template <class T>
class Heat final : public Physics<T> {
 public:
  Heat(const Config& config, const Domain& domain)
      : domain_(domain),
        spec_(stencil_spec(config.stencil)),
        stages_(config.stages),
        given_(given_diffusion_number(config)),
        diffusion_number_(given_) {
    if (diffusion_number_ == 0)
      diffusion_number_ =
          choose_diffusion_number(spec_, domain, config.steps * config.stages, config.stages);
  }

  int parts() const override { return domain_.arrays(); }
  void set_initial(const FieldSet<T>& fields) const override { set_wave(domain_, fields); }
  void set_outer_ghosts(const FieldSet<T>& fields, std::int64_t substep) const override {
    app::set_outer_ghosts(domain_, fields, spec_, diffusion_number_, substep);
  }
  void start(std::int64_t, const FieldSet<T>& in, const FieldSet<T>& out, int part,
             std::span<const comm::Box> boxes) const override {
    start_advance(domain_, spec_, diffusion_number_, in, out, part, boxes);
  }
  void finish(const FieldSet<T>& out) const override { finish_advance(out); }
  void observe(std::int64_t, const FieldSet<T>&, MPI_Comm) override {}

  // Measures time in units of h^2 / kappa.
  Clock clock(std::int64_t substep) const override {
    const double dt = stages_ * diffusion_number_;
    return {static_cast<double>(substep / stages_) * dt, dt};
  }
  std::vector<double> state() const override { return {diffusion_number_}; }
  void restore(std::span<const double> state) override {
    if (state.size() != 1 || !(state[0] > 0 && state[0] <= kLargestDiffusionNumber))
      throw ConfigError("has a state that heat does not know");
    diffusion_number_ = state[0];
  }
  // The exact wave knows one diffusion number for all substeps.
  void reload(const Config& config, const FieldSet<T>&, MPI_Comm) override {
    const double given = given_diffusion_number(config);
    if (given == 0 ? given_ == 0 : given == diffusion_number_) return;
    throw ConfigError("heat.diffusion cannot change (" + std::to_string(given) +
                      ", the run keeps " + std::to_string(diffusion_number_) +
                      "): leave it as it was, or begin a new run");
  }
  std::vector<double> measure(const FieldSet<T>&, MPI_Comm) const override { return {}; }

  std::optional<SolutionCheck> check(const FieldSet<T>& fields, std::int64_t substeps,
                                     MPI_Comm comm) const override {
    const auto wave = check_wave(domain_, fields, spec_, diffusion_number_, substeps, comm);
    if (!has_exact_wave(domain_) && std::isfinite(wave.error)) return std::nullopt;
    return wave;
  }

 private:
  const Domain& domain_;
  StencilSpec spec_;
  int stages_;
  double given_;  // 0 if the number of steps has chosen the number
  double diffusion_number_;
};

template <class T>
std::unique_ptr<Physics<T>> make_heat(const Config& config, const Domain& domain) {
  return std::make_unique<Heat<T>>(config, domain);
}

}  // namespace

extern const PhysicsKind kHeat{"heat",
                               "independent heat equations",
                               [](const Config&) { return 0; },
                               heat_info,
                               make_heat<double>,
                               make_heat<float>,
                               kHeatParameters};

}  // namespace halocline::app
