// SPDX-License-Identifier: BSD-3-Clause
// Finds where a gas is compressed, for a viscosity that widens shocks.
//
// Source: the Pencil Code, from which Astaroth has it: zeta = c h^2 <max5(max(0, -div u))>. max5 is
// the maximum over a cube of 5 points a side. The mean is over 7 points a side.
#pragma once

#include <array>

#include "physics/mhd/mhd.hpp"

namespace halocline::app::mhd {

/// Lists the rounds that make kShock.
enum class ShockRound {
  compression,  ///< max(0, -div u), from the velocity and its ghosts
  maximum,      ///< largest value of 125 points, reads two ghosts in all directions
  mean          ///< weighted mean of 343 points times c h^2, reads three ghosts in all directions
};

/// Makes one round of kShock in `to` from `from`, on the owned points. Complete on return. Local.
template <class T>
void find_shocks(const Domain& domain, const Parameters& parameters,
                 const std::array<double, 3>& spacing, ShockRound round, const FieldSet<T>& from,
                 const FieldSet<T>& to);

}  // namespace halocline::app::mhd
