// SPDX-License-Identifier: BSD-3-Clause
// Says what the mini-app computes: the interface of every physics, and the list of them.
#pragma once

#include <mpi.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/halo/halo_spec.hpp"
#include "config.hpp"
#include "fields.hpp"

namespace halocline::app {

/// Compares fields with an exact solution. `error` is the largest deviation over all ranks and
/// fields, relative to the solution's amplitude.
struct SolutionCheck {
  double error;
  double tolerance;
  bool passed() const { return std::isfinite(error) && error <= tolerance; }
};

/// Tells the time of a step, in the units of the physics.
struct Clock {
  double time;  ///< at the begin of the step
  double dt;    ///< length of the step
};

/// Computes the fields of a domain, one substep after the other. It owns no fields. `in` and `out`
/// are two sets of fields that take turns: the `out` of a substep is the `in` of the next one. So
/// `out` holds the fields from before the last substep when a substep begins.
template <class T>
class Physics {
 public:
  virtual ~Physics() = default;

  /// Returns the number of parts that can be computed one after the other. Fields that do not
  /// depend on each other are parts.
  virtual int parts() const = 0;

  /// Sets the owned points and the ghosts beyond open boundaries to the initial state, and other
  /// ghosts to NaN, in host memory. Local.
  virtual void set_initial(const FieldSet<T>& fields) const = 0;

  /// Sets the ghosts beyond open boundaries to the exact solution for the substep with this number,
  /// in host memory, if PhysicsInfo::knows_outer_ghosts. Leaves other ghosts alone. Local.
  virtual void set_outer_ghosts(const FieldSet<T>& fields, std::int64_t substep) const = 0;

  /// Makes the field PhysicsInfo::helper on the owned points: reads `from` with its ghosts, and
  /// writes that field of `to`. Complete on return. Local.
  virtual void help([[maybe_unused]] int round, [[maybe_unused]] const FieldSet<T>& from,
                    [[maybe_unused]] const FieldSet<T>& to) const {}

  /// Starts part `part` of a substep on the points of `boxes`, which have stored coordinates.
  /// finish() waits for it. Every point takes the same operations in the same order, so that the
  /// bits do not depend on decomposition, layout or boxes. Local.
  /// \param substep number since the begin of the run, from 0
  virtual void start(std::int64_t substep, const FieldSet<T>& in, const FieldSet<T>& out, int part,
                     std::span<const comm::Box> boxes) const = 0;

  /// Waits for all parts that start() has started. Local.
  virtual void finish(const FieldSet<T>& out) const = 0;

  /// Sees the fields of a substep with their ghosts, before finish(). May choose the time steps
  /// that follow. Collective.
  virtual void observe(std::int64_t substep, const FieldSet<T>& in, MPI_Comm comm) = 0;

  /// Returns the time at which a substep's step begins, and the length of that step. Local.
  virtual Clock clock(std::int64_t substep) const = 0;

  /// Returns the numbers that the next steps depend on beside the fields, such as the time. Called
  /// between two steps. Local.
  virtual std::vector<double> state() const = 0;
  /// Goes on from a state() that another run of the same physics has left. Local.
  /// \throws ConfigError if it is none: "has a state that heat does not know"
  virtual void restore(std::span<const double> state) = 0;

  /// Takes the parameters of another configuration from the step on that begins with `fields`,
  /// whose ghosts in all directions are set. Collective.
  /// \throws ConfigError if they do not suit the run, which then keeps its parameters
  virtual void reload(const Config& config, const FieldSet<T>& fields, MPI_Comm comm) = 0;

  /// Measures the owned points of working fields, whose ghosts in all directions are set.
  /// Collective. \return one number for each of PhysicsInfo::measures, the same on all ranks
  virtual std::vector<double> measure(const FieldSet<T>& fields, MPI_Comm comm) const = 0;

  /// Compares the owned points in host memory with the exact solution after `substeps` substeps.
  /// \return nullopt if no exact solution is known. Collective.
  virtual std::optional<SolutionCheck> check(const FieldSet<T>& fields, std::int64_t substeps,
                                             MPI_Comm comm) const = 0;
};

/// Describes a field without an equation. It is made anew before each substep, in rounds, from the
/// fields and from itself. Its ghosts are exchanged after each round.
struct HelperField {
  int field;  ///< its number
  /// Lists the ghosts that are read after each round. The number of rounds is odd: the first round
  /// reads the `in` of the substep and writes `out`, the next one reads `out`, and so on.
  std::vector<comm::DirectionSet> needs;
};

/// Holds what the program must know of a physics before there are fields.
struct PhysicsInfo {
  std::vector<std::string_view> fields;  ///< their names; empty: any number of fields
  int radius;                            ///< ghosts that the stencil reads on each side; points
  int substeps;                          ///< substeps of a step, each with an exchange
  /// Returns the directions in which the stencil of a field reads ghosts. With an edge or a corner
  /// it returns the faces beside it, which open boundaries mirror.
  std::function<comm::DirectionSet(int field)> needs;
  std::optional<HelperField> helper{};  ///< a field that takes exchanges of its own
  /// Tells if substeps after the first one of a step read the fields before the last substep.
  bool reads_out = false;
  /// Tells if the first step depends on the fields with their ghosts. This takes one exchange more.
  bool chooses_steps = false;
  bool wants_aligned_rows = false;  ///< Pad::automatic aligns rows on the host, too
  bool checks_steps = false;  ///< the steps are fixed, and Physics::reload() refuses unstable ones
  bool knows_outer_ghosts = false;            ///< Physics::set_outer_ghosts() can be called
  std::array<double, 3> spacing{1, 1, 1};     ///< distance of points along x, y and z
  std::vector<std::string_view> measures{};   ///< names of the numbers that measure() returns
  std::vector<std::string_view> conserved{};  ///< measures of which the time series has the drift
  std::vector<std::string> notes{};           ///< warnings to print before the run, a line each
};

/// Describes a number or a choice that a user may set, such as mhd.nu.
struct PhysicsParameter {
  std::string_view name;     ///< without the name of the physics
  std::string_view meaning;  ///< a few words, with the unit
  double usual;              ///< default
  double least;              ///< smallest value
  /// Names the values 0, 1, 2 ... of a choice. Empty: any number.
  std::span<const std::string_view> choices{};
};

/// Names a physics, and makes it.
struct PhysicsKind {
  std::string_view name, meaning;
  /// Returns the number of fields; 0: as many as the user wants.
  int (*fields)(const Config&);
  /// Throws ConfigError that names the key if the configuration does not suit the physics.
  PhysicsInfo (*info)(const Config&);
  /// The physics keeps references to the configuration and the domain.
  std::unique_ptr<Physics<double>> (*make_double)(const Config&, const Domain&);
  std::unique_ptr<Physics<float>> (*make_float)(const Config&, const Domain&);
  std::span<const PhysicsParameter> parameters;
  /// Names parameters that a run keeps: neither RELOAD nor a restart changes them.
  std::span<const std::string_view> kept{};
};

/// Returns all physics, the default first. registry.cpp has one line for each.
std::span<const PhysicsKind> all_physics();

/// Returns the physics that the configuration names.
const PhysicsKind& physics_of(const Config& config);

/// Makes the physics that the configuration names.
template <class T>
std::unique_ptr<Physics<T>> make_physics(const Config& config, const Domain& domain) {
  if constexpr (sizeof(T) == sizeof(double))
    return physics_of(config).make_double(config, domain);
  else
    return physics_of(config).make_float(config, domain);
}

}  // namespace halocline::app
