// SPDX-License-Identifier: BSD-3-Clause
#include "boundaries.hpp"

#include <algorithm>
#include <string>

#include "field_views.hpp"
#include "support/error.hpp"

namespace halocline::app {

namespace {

bool is_mirrored(Boundary kind) {
  return kind == Boundary::symmetric || kind == Boundary::antisymmetric;
}

// Calls body(ghost, its mirror image, its number) for all elements of an array in `ghosts`. A ghost
// and its image have stored coordinates along `axis` whose sum is `mirror`.
template <class T, class Body>
void for_each_image(const FieldSet<T>& fields, int array, std::int64_t elements_per_point,
                    const comm::Box& ghosts, std::size_t axis, std::int64_t mirror, Body body) {
  const auto view = array_of(fields, array);
  const auto [x, y, z] = ghosts.begin;
  const auto [nx, ny, nz] = ghosts.extent;
  const auto row = nx * elements_per_point, first = x * elements_per_point;
  Kokkos::parallel_for(
      "halocline::boundaries", HostPolicy({0, 0, 0}, {nz, ny, row}),
      [=, y = y, z = z, ny = ny](std::int64_t k, std::int64_t j, std::int64_t e) {
        const std::int64_t at[3] = {z + k, y + j, first + e};
        std::int64_t image[3] = {at[0], at[1], at[2]};
        if (axis == 0)
          image[2] += (mirror - 2 * (at[2] / elements_per_point)) * elements_per_point;
        else
          image[2 - axis] = mirror - image[2 - axis];
        body(view(at[0], at[1], at[2]), view(image[0], image[1], image[2]), (k * ny + j) * row + e);
      });
  HostSpace().fence("halocline::boundaries");
}

}  // namespace

void check_boundaries(const Config& config, const PhysicsInfo& physics,
                      const comm::Decomposition& decomposition) {
  if (!decomposition.has_open_axis()) {
    if (config.boundary != PerSide(Boundary::exact))
      throw ConfigError(
          "boundary has no side (all axes are periodic): use periodic = false, or leave boundary "
          "out");
    return;
  }
  for (std::size_t side = 0; side < config.boundary.size(); ++side) {
    const auto axis = side / 2;
    if (decomposition.periodic()[axis]) continue;
    const auto kind = config.boundary[side];
    if (kind == Boundary::exact && !physics.knows_outer_ghosts)
      throw ConfigError("boundary is exact, but " + config.physics + " has no exact ghosts (" +
                        "side " + std::string(1, "xyz"[axis]) + "-+"[side % 2] +
                        "): use boundary = \"symmetric\", \"antisymmetric\" or \"fixed\", or "
                        "periodic = true");
    const auto least = decomposition.global()[axis] / decomposition.ranks()[axis];
    if (is_mirrored(kind) && least <= config.radius[axis])
      throw ConfigError("boundary has too few points to mirror (boundary " +
                        std::string(to_string(kind)) + ", radius " +
                        std::to_string(config.radius[axis]) + ", some rank has " +
                        std::to_string(least) + " points in " + std::string(1, "xyz"[axis]) +
                        "): use a smaller radius, fewer ranks or more points");
  }
}

bool has_exact_side(const Domain& domain) {
  for (std::size_t side = 0; side < domain.boundary.size(); ++side)
    if (!domain.decomposition.periodic()[side / 2] && domain.boundary[side] == Boundary::exact)
      return true;
  return false;
}

template <class T>
Boundaries<T>::Boundaries(const Domain& domain) : elements_per_point_(domain.elements_per_point()) {
  const auto& halo = domain.halo;
  const auto at = domain.decomposition.coordinates(domain.rank);
  for (std::size_t number = 0; number < domain.boundary.size(); ++number) {
    const auto axis = number / 2;
    const bool is_high = number % 2 == 1;
    const auto radius = halo.radius[axis];
    const auto last = domain.decomposition.ranks()[axis] - 1;
    const auto kind = domain.boundary[number];
    if (domain.decomposition.periodic()[axis] || at[axis] != (is_high ? last : 0) ||
        kind == Boundary::exact)
      continue;
    Side side{kind, axis, 2 * radius, {{}, halo.stored()}, {}};
    side.ghosts.extent[axis] = radius;
    if (is_high) {
      side.mirror += 2 * (halo.extent[axis] - 1);
      side.ghosts.begin[axis] = radius + halo.extent[axis];
    }
    sides_.push_back(side);
  }
}

template <class T>
void Boundaries<T>::keep(const FieldSet<T>& fields) {
  for (auto& side : sides_) {
    if (side.kind != Boundary::fixed) continue;
    const auto values = static_cast<std::size_t>(side.ghosts.points() * elements_per_point_);
    side.kept.assign(static_cast<std::size_t>(fields.arrays()), std::vector<T>(values));
    for (int a = 0; a < fields.arrays(); ++a)
      for_each_image(fields, a, elements_per_point_, side.ghosts, side.axis, side.mirror,
                     [kept = side.kept[static_cast<std::size_t>(a)].data()](
                         const T& ghost, const T&, std::int64_t i) { kept[i] = ghost; });
  }
}

template <class T>
void Boundaries<T>::set(const FieldSet<T>& fields) const {
  for (const auto& side : sides_)
    for (int a = 0; a < fields.arrays(); ++a) {
      const auto for_each = [&](auto body) {
        for_each_image(fields, a, elements_per_point_, side.ghosts, side.axis, side.mirror, body);
      };
      if (side.kind == Boundary::symmetric)
        for_each([](T& ghost, const T& image, std::int64_t) { ghost = image; });
      else if (side.kind == Boundary::antisymmetric)
        for_each([](T& ghost, const T& image, std::int64_t) { ghost = -image; });
      else
        for_each([kept = side.kept[static_cast<std::size_t>(a)].data()](
                     T& ghost, const T&, std::int64_t i) { ghost = kept[i]; });
    }
}

template class Boundaries<double>;
template class Boundaries<float>;

}  // namespace halocline::app
