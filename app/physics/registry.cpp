// SPDX-License-Identifier: BSD-3-Clause
// Lists all physics. A new one has its folder here, and one line in this list.
#include <array>

#include "physics.hpp"

namespace halocline::app {

extern const PhysicsKind kHeat;

std::span<const PhysicsKind> all_physics() {
  static const std::array all{kHeat};
  return all;
}

const PhysicsKind& physics_of(const Config&) {
  return all_physics().front();
}

}  // namespace halocline::app
