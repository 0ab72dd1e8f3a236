// SPDX-License-Identifier: BSD-3-Clause
#include "parameters.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numbers>
#include <string>

#include "physics/mhd/initial.hpp"

namespace halocline::app::mhd {

namespace {

constexpr double kAny = -std::numeric_limits<double>::infinity();
constexpr double kAboveZero = std::numeric_limits<double>::min();
constexpr Parameters kUsual;
constexpr ForcingParameters kUsualForcing;
constexpr std::array<std::string_view, 2> kNoYes{"no", "yes"};

constexpr std::array kParameters{
    PhysicsParameter{"spacing", "distance of points (length)", 2 * std::numbers::pi / 128,
                     kAboveZero},
    PhysicsParameter{"dt", "time step; 0: the longest that is stable (time)", 0, 0},
    PhysicsParameter{"initial", "state at the begin", 0, 0, kInitialNames},
    PhysicsParameter{"amplitude", "largest velocity and potential at the begin, about", 0.2, 0},
    PhysicsParameter{"shell-radius", "radius of an explosion (length)", 0.8, 0},
    PhysicsParameter{"shell-width", "width of its shell (length)", 0.2, kAboveZero},
    PhysicsParameter{"entropy", "whether the gas heats and cools; no: it is isothermal", 1, 0,
                     kNoYes},
    PhysicsParameter{"magnetic", "whether there is a magnetic field", 1, 0, kNoYes},
    PhysicsParameter{"upwind", "whether sixth differences smooth the density upwind", 0, 0, kNoYes},
    PhysicsParameter{"shock", "coefficient of the viscosity near shocks; 0: none", 0, 0},
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
    PhysicsParameter{"forcing", "strength of a helical force; 0: none", kUsualForcing.strength, 0},
    PhysicsParameter{"forcing-k-min", "shortest wave vector of the force (waves across the box)",
                     kUsualForcing.k_min, 0},
    PhysicsParameter{"forcing-k-max", "longest wave vector of the force", kUsualForcing.k_max, 0},
    PhysicsParameter{"forcing-helicity", "helicity of the force; 1 or -1: the most",
                     kUsualForcing.helicity, kAny},
    PhysicsParameter{"astaroth-bulk",
                     "whether bulk viscosity has no force on density gradients, as in Astaroth", 0,
                     0, kNoYes},
};

}  // namespace

std::span<const PhysicsParameter> all_parameters() {
  return kParameters;
}

std::span<const std::string_view> kept_parameters() {
  static constexpr std::array<std::string_view, 8> kKept{"spacing",      "initial",     "amplitude",
                                                         "shell-radius", "shell-width", "entropy",
                                                         "magnetic",     "lnrho0"};
  return kKept;
}

double parameter(const Config& config, std::string_view name) {
  if (const auto found = config.parameters.find("mhd." + std::string(name));
      found != config.parameters.end())
    return found->second;
  return std::find_if(kParameters.begin(), kParameters.end(),
                      [&](const auto& one) { return one.name == name; })
      ->usual;
}

Parameters parameters_of(const Config& config) {
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
          .terms = {.entropy = get("entropy") != 0, .magnetic = get("magnetic") != 0},
          .upwind = get("upwind") != 0,
          .shock = get("shock"),
          .astaroth_bulk_viscosity = get("astaroth-bulk") != 0};
}

ForcingParameters forcing_of(const Config& config) {
  const auto get = [&](std::string_view name) { return parameter(config, name); };
  return {.strength = get("forcing"),
          .k_min = get("forcing-k-min"),
          .k_max = get("forcing-k-max"),
          .helicity = get("forcing-helicity"),
          .seed = config.seed};
}

}  // namespace halocline::app::mhd
