// SPDX-License-Identifier: BSD-3-Clause
// Lists the parameters of magnetohydrodynamics that a user may set.
#pragma once

#include <span>
#include <string_view>

#include "physics.hpp"
#include "physics/mhd/forcing.hpp"
#include "physics/mhd/mhd.hpp"

namespace halocline::app::mhd {

/// Returns all parameters in the order of the help text.
std::span<const PhysicsParameter> all_parameters();

/// Returns the names of parameters that a run keeps. They made its fields, or give them their
/// meaning.
std::span<const std::string_view> kept_parameters();

/// Returns the value of a parameter, such as "nu". A choice has the number of its name.
double parameter(const Config& config, std::string_view name);

/// Returns the parameters of the equations.
Parameters parameters_of(const Config& config);

/// Returns the parameters of the force.
ForcingParameters forcing_of(const Config& config);

/// Returns the number of fields that have an equation.
int number_of_fields(const Config& config);

/// Returns what the program must know before there are fields.
/// \throws ConfigError that names the key if parameters do not suit each other.
PhysicsInfo info(const Config& config);

}  // namespace halocline::app::mhd
