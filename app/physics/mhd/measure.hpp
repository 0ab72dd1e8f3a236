// SPDX-License-Identifier: BSD-3-Clause
// Measures the state of the gas in a few numbers.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "physics/mhd/mhd.hpp"

namespace halocline::app::mhd {

/// Names the numbers of measure(). u, b, va: velocity, magnetic field and Alfven speed. e_: energy.
/// rms: root of the mean square over all points. The others are integrals over the box, or extrema.
inline constexpr std::array<std::string_view, 18> kMeasures{
    "u_min",      "u_rms",     "u_max",     "b_min",      "b_rms",      "b_max",
    "va_min",     "va_rms",    "va_max",    "mass",       "momentum_x", "momentum_y",
    "momentum_z", "e_kinetic", "e_thermal", "e_magnetic", "energy",     "div_b_max"};

/// Returns the numbers of kMeasures. Needs the ghosts of all faces and edges. Extrema are the same
/// bits on every number of ranks; sums may differ in their last digits. A NaN makes sums NaN and
/// extrema infinite. Collective.
template <class T>
std::vector<double> measure(const Domain& domain, const Parameters& parameters,
                            const std::array<double, 3>& spacing, const FieldSet<T>& fields,
                            MPI_Comm comm);

}  // namespace halocline::app::mhd
