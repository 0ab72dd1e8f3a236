// SPDX-License-Identifier: BSD-3-Clause
// Gives the states in which a run of magnetohydrodynamics begins.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string_view>

#include "config.hpp"
#include "physics/mhd/wave.hpp"

namespace halocline::app::mhd {

enum class Initial { waves, beltrami, alfven, explosion, random, uniform };
inline constexpr std::array<std::string_view, 6> kInitialNames{"waves",     "beltrami", "alfven",
                                                               "explosion", "random",   "uniform"};

/// Returns the value of a field at a point with these global coordinates.
using InitialState = std::function<double(Field field, const comm::Int3& point)>;

/// Returns the initial state that the configuration names, in a box of `points` points.
InitialState initial_state(const Config& config, const comm::Int3& points);

/// Returns the exact solution that the state of the configuration has without a force, as it
/// begins. \return nullopt if none is known
std::optional<CircularWave> exact_solution(const Config& config, const comm::Int3& points);

}  // namespace halocline::app::mhd
