// SPDX-License-Identifier: BSD-3-Clause
// Lists all physics. A new one has its folder here, and one line in this list.
#include <algorithm>
#include <array>

#include "physics.hpp"

namespace halocline::app {

extern const PhysicsKind kHeat;
extern const PhysicsKind kMhd;

std::span<const PhysicsKind> all_physics() {
  static const std::array all{kHeat, kMhd};
  return all;
}

const PhysicsKind& physics_of(const Config& config) {
  const auto all = all_physics();
  return *std::find_if(all.begin(), all.end(),
                       [&](const PhysicsKind& one) { return one.name == config.physics; });
}

}  // namespace halocline::app
