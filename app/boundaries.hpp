// SPDX-License-Identifier: BSD-3-Clause
// Sets the ghosts beyond open boundaries that a kind of boundary fixes, whatever the physics is.
//
// Best peer: the Pencil Code, which has more kinds, and one for each field. Here the bits do not
// depend on the number of ranks, which a test checks for each kind.
#pragma once

#include <vector>

#include "fields.hpp"
#include "physics.hpp"

namespace halocline::app {

/// Checks that the open sides of a decomposition suit the physics and the points of each rank.
/// Local.
/// \throws ConfigError that names the key
void check_boundaries(const Config& config, const PhysicsInfo& physics,
                      const comm::Decomposition& decomposition);

/// Tells if the physics has to set the ghosts beyond some side.
bool has_exact_side(const Domain& domain);

/// Sets the ghosts of this rank beyond open sides of the other kinds, in host memory. It sets one
/// side after the other, x before y before z. Each side takes all stored points beyond it. So the
/// ghosts beyond edges and corners follow from those that are there, as in an undivided domain.
template <class T>
class Boundaries {
 public:
  explicit Boundaries(const Domain& domain);

  /// Keeps the ghosts beyond fixed sides, which set() then restores. Local.
  void keep(const FieldSet<T>& fields);

  /// Sets the ghosts. Ghosts that come from other ranks, or from the physics, are there already.
  /// Local.
  void set(const FieldSet<T>& fields) const;

 private:
  struct Side {
    Boundary kind;
    std::size_t axis;
    std::int64_t mirror;  // a ghost and its mirror image have stored coordinates of this sum
    comm::Box ghosts;     // all stored points beyond the side
    std::vector<std::vector<T>> kept;  // by array; empty unless the side is fixed
  };

  int elements_per_point_;
  std::vector<Side> sides_;
};

}  // namespace halocline::app
