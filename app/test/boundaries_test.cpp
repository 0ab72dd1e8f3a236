// SPDX-License-Identifier: BSD-3-Clause
// Tests the ghosts beyond open sides against a rule for one point of the undivided domain.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "boundaries.hpp"
#include "field_views.hpp"
#include "physics/heat/advance.hpp"
#include "physics/heat/waves.hpp"

namespace halocline::app {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Returns a number that belongs to a point of a field. Two functions of points have other seeds.
double number_of(const comm::Int3& point, int field, int seed) {
  return static_cast<double>(1 + ((point[2] * 64 + point[1]) * 64 + point[0]) * 8 + field) +
         0.25 * seed;
}

/// Calculates the value at any point: owned, or beyond sides.
class Rule {
 public:
  explicit Rule(const Domain& domain) : domain_(domain) {}

  double value(comm::Int3 point, int field) const {
    const auto& global = domain_.decomposition.global();
    // The side that is set last decides.
    for (std::size_t axis : {2, 1, 0}) {
      const bool is_low = point[axis] < 0, is_high = point[axis] >= global[axis];
      if (domain_.decomposition.periodic()[axis] || !(is_low || is_high)) continue;
      const auto kind = domain_.boundary[2 * axis + (is_high ? 1 : 0)];
      if (kind == Boundary::exact) continue;
      if (kind == Boundary::fixed) return initial(point, field);
      const auto last = is_low ? 0 : global[axis] - 1;
      point[axis] = 2 * last - point[axis];
      return (kind == Boundary::symmetric ? 1 : -1) * value(point, field);
    }
    return given(point, field);
  }
  /// Returns the value that an exchange or the physics has set, or that was computed.
  double given(comm::Int3 point, int field) const {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const auto points = domain_.decomposition.global()[axis];
      if (domain_.decomposition.periodic()[axis]) point[axis] = (point[axis] + points) % points;
    }
    return number_of(point, field, 0);
  }
  static double initial(const comm::Int3& point, int field) { return number_of(point, field, 1); }

 private:
  const Domain& domain_;
};

/// Calls body(element, global coordinates, place) for each stored element.
template <class Body>
void for_each_stored(const Domain& domain, const FieldSet<double>& fields, Body body) {
  for (int a = 0; a < fields.arrays(); ++a) {
    const auto view = array_of(fields, a);
    const ElementMap map(domain, a);
    const auto [nx, ny, nz] = domain.halo.stored();
    for (std::int64_t z = 0; z < nz; ++z)
      for (std::int64_t y = 0; y < ny; ++y)
        for (std::int64_t e = 0; e < nx * domain.elements_per_point(); ++e)
          body(view(z, y, e),
               comm::Int3{map.first[0] + e / domain.elements_per_point(), map.first[1] + y,
                          map.first[2] + z},
               map(z, y, e));
  }
}

/// Tells if some side of another kind than exact lies between a point and the domain.
bool is_beyond_set_side(const Domain& domain, const comm::Int3& point) {
  bool out = false;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const bool is_high = point[axis] >= domain.decomposition.global()[axis];
    const bool is_outside = point[axis] < 0 || is_high;
    out |= !domain.decomposition.periodic()[axis] && is_outside &&
           domain.boundary[2 * axis + (is_high ? 1 : 0)] != Boundary::exact;
  }
  return out;
}

void check_ghosts(const Config& config) {
  const auto domain = make_domain(config, comm::NodeHierarchy(MPI_COMM_WORLD));
  const Rule rule(domain);
  const FieldSet<double> fields(domain, nullptr);
  Boundaries<double> boundaries(domain);
  for_each_stored(
      domain, fields, [](double& value, const comm::Int3& point, const ElementMap::Place& place) {
        value = place.outside ? Rule::initial(point, place.field * 2 + place.part) : kNan;
      });
  boundaries.keep(fields);
  for_each_stored(
      domain, fields, [&](double& value, const comm::Int3& point, const ElementMap::Place& place) {
        value = is_beyond_set_side(domain, point) ? kNan
                                                  : rule.given(point, place.field * 2 + place.part);
      });
  boundaries.set(fields);
  std::int64_t wrong = 0;
  for_each_stored(domain, fields,
                  [&](double& value, const comm::Int3& point, const ElementMap::Place& place) {
                    wrong += value != rule.value(point, place.field * 2 + place.part);
                  });
  EXPECT_EQ(wrong, 0) << "rank " << domain.rank;
}

Config open_config() {
  Config config;
  config.pad = Pad::by64;
  config.global = {9, 10, 17};
  config.radius = 2;
  config.fields = 2;
  config.stencil = Stencil::point26;
  config.periodic = false;
  return config;
}

TEST(Boundaries, OfOneKindSetFacesEdgesAndCorners) {
  for (const auto kind : all_of<Boundary>())
    for (const auto layout : {Layout::soa, Layout::aos}) {
      SCOPED_TRACE(to_string(kind));
      auto config = open_config();
      config.boundary = kind;
      config.layout = layout;
      check_ghosts(config);
    }
}

TEST(Boundaries, OfAnyKindsMeet) {
  std::mt19937 random(20270101);  // the same on all ranks
  for (int i = 0; i < 40; ++i) {
    auto config = open_config();
    for (auto& kind : config.boundary) kind = all_of<Boundary>()[random() % 4];
    for (auto& is_periodic : config.periodic) is_periodic = random() % 4 == 0;
    if (config.periodic == comm::PerAxis(true)) continue;
    config.radius = {2, 3, 1};
    config.element = random() % 2 == 0 ? Element::float64 : Element::complex64;
    config.layout = random() % 2 == 0 ? Layout::soa : Layout::aos;
    check_ghosts(config);
  }
}

// The initial wave of heat has the mirror images that its sides ask for.
TEST(Boundaries, SuitTheWavesOfHeat) {
  using enum Boundary;
  for (const auto& sides :
       {PerSide(symmetric), PerSide(antisymmetric),
        PerSide<Boundary>({symmetric, antisymmetric, antisymmetric, symmetric, exact, symmetric}),
        PerSide<Boundary>({antisymmetric, exact, exact, exact, exact, antisymmetric})}) {
    auto config = open_config();
    config.boundary = sides;
    config.fields = 8;
    const auto domain = make_domain(config, comm::NodeHierarchy(MPI_COMM_SELF));
    const FieldSet<double> fields(domain, nullptr);
    const auto spec = stencil_spec(config.stencil);
    set_wave(domain, fields);
    set_outer_ghosts(domain, fields, spec, 0.1, 0);
    Boundaries<double>(domain).set(fields);
    const FieldSet<double> next(domain, nullptr);
    advance(domain, spec, 0.1, fields, next);
    EXPECT_LT(check_wave(domain, next, spec, 0.1, 1, MPI_COMM_SELF).error, 1e-13);
    EXPECT_GT(check_wave(domain, next, spec, 0.1, 2, MPI_COMM_SELF).error, 1e-3);
    EXPECT_FALSE(
        check_wave(domain, next, spec, std::numeric_limits<double>::quiet_NaN(), 1, MPI_COMM_SELF)
            .passed());
  }
}

}  // namespace
}  // namespace halocline::app
