// SPDX-License-Identifier: BSD-3-Clause
// Says what the program must know of magnetohydrodynamics before there are fields, and refuses
// parameters that do not suit each other.
#include <cmath>
#include <string>

#include "physics/mhd/initial.hpp"
#include "physics/mhd/measure.hpp"
#include "physics/mhd/parameters.hpp"
#include "support/error.hpp"

namespace halocline::app::mhd {

namespace {

void refuse_unsuitable(const Config& config) {
  if (config.stages != 1)
    throw ConfigError("stages are those of mhd (stages " + std::to_string(config.stages) +
                      "): leave stages out, mhd has 3");
  if (config.stencil != Config().stencil)
    throw ConfigError("stencil is that of mhd (stencil " + std::string(to_string(config.stencil)) +
                      "): leave stencil out, it is for physics heat");
  if (is_complex(config.element))
    throw ConfigError("mhd has real fields (element " + std::string(to_string(config.element)) +
                      "): use element = \"double\" or \"float\"");
  const auto p = parameters_of(config);
  const auto initial = static_cast<Initial>(parameter(config, "initial"));
  if (!p.terms.magnetic && (initial == Initial::beltrami || initial == Initial::alfven))
    throw ConfigError("mhd.initial needs a magnetic field (mhd.magnetic no): use mhd.magnetic yes");
  if (initial == Initial::alfven && p.b0[0] == 0)
    throw ConfigError(
        "mhd.initial alfven needs a field along x (mhd.b0x 0): use another mhd.b0x, such as 1");
  if (!p.terms.magnetic && p.b0 != std::array<double, 3>{})
    throw ConfigError(
        "mhd.b0x, mhd.b0y and mhd.b0z are of a magnetic field (mhd.magnetic no): leave them out");
  if (p.terms.entropy && p.gamma <= 1)
    throw ConfigError("mhd.gamma is not that of a gas (" + std::to_string(p.gamma) +
                      "): give a number above 1, or mhd.entropy no");
  const auto forcing = forcing_of(config);
  if (std::abs(forcing.helicity) > 1)
    throw ConfigError("mhd.forcing-helicity is too large (" + std::to_string(forcing.helicity) +
                      "): give a number from -1 to 1");
  if (forcing.k_max > 100)
    throw ConfigError("mhd.forcing-k-max is too large (" + std::to_string(forcing.k_max) +
                      " waves): use at most 100");
  if (forcing.strength > 0 && shell(forcing.k_min, forcing.k_max).empty())
    throw ConfigError("mhd.forcing-k-max leaves no wave (" + std::to_string(forcing.k_min) +
                      " to " + std::to_string(forcing.k_max) +
                      " waves across the box): use limits with a whole number between them");
}

}  // namespace

int number_of_fields(const Config& config) {
  return static_cast<int>(stored_fields(parameters_of(config)).size());
}

PhysicsInfo info(const Config& config) {
  refuse_unsuitable(config);
  constexpr const char* kNames[] = {"lnrho", "ux", "uy", "uz", "ax", "ay", "az", "s", "shock"};
  const double h = parameter(config, "spacing");
  const auto p = parameters_of(config);
  const auto fields = stored_fields(p);
  PhysicsInfo out{
      .fields = {},
      .radius = kRadius,
      .substeps = Substep::kOfStep,
      .needs =
          [fields](int field) { return needed_neighbors(fields[static_cast<std::size_t>(field)]); },
      .reads_out = true,
      .chooses_steps = parameter(config, "dt") == 0 || !config.force_dt,
      .wants_aligned_rows = true,
      .checks_steps = parameter(config, "dt") > 0 && !config.force_dt,
      .spacing = {h, h, h},
      .measures = {kMeasures.begin(), kMeasures.end()},
      .conserved = {"mass", "energy"}};

  if (p.shock > 0)
    out.helper = {static_cast<int>(fields.size()) - 1,
                  {comm::DirectionSet::all(), comm::DirectionSet::all(),
                   comm::DirectionSet::along_at_most(1)}};
  for (const auto field : fields) out.fields.emplace_back(kNames[field]);
  if (p.terms.entropy && !is_ideal_gas(p))
    out.notes.push_back(
        "energy is not conserved: mhd.cs0^2 is " + std::to_string(p.cs0 * p.cs0) +
        ", an ideal gas needs (gamma - 1) cp t0 = " + std::to_string((p.gamma - 1) * p.cp * p.t0));
  return out;
}

}  // namespace halocline::app::mhd
