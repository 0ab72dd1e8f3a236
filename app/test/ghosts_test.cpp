// SPDX-License-Identifier: BSD-3-Clause
// Tests which ghosts a stencil reads, by NaN in the ghosts, and which ghosts the verification of an
// exchange checks.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "dtype/pack/kokkos/kokkos_threads.hpp"
#include "field_views.hpp"
#include "physics/heat/advance.hpp"
#include "physics/heat/stencil.hpp"
#include "physics/heat/waves.hpp"
#include "verify.hpp"

namespace halocline::app {
namespace {

constexpr double kDiffusionNumber = 0.05;

template <class Body>
void for_each_element(const Domain& domain, const FieldSet<double>& fields, Body body) {
  for (int a = 0; a < fields.arrays(); ++a) {
    const auto view = array_of(fields, a);
    const ElementMap map(domain, a);
    const auto [nx, ny, nz] = domain.halo.stored();
    for (std::int64_t z = 0; z < nz; ++z)
      for (std::int64_t y = 0; y < ny; ++y)
        for (std::int64_t e = 0; e < nx * domain.elements_per_point(); ++e)
          body(view(z, y, e), map(z, y, e));
  }
}

comm::DirectionSet only(comm::Direction direction) {
  comm::DirectionSet out;
  out.insert(direction);
  return out;
}

/// Computes steps on one rank with open boundaries, so that the exact wave fills all of its ghosts.
class OneStep {
 public:
  OneStep(Stencil stencil, Layout layout, int radius)
      : spec_(stencil_spec(stencil)),
        domain_(
            make_domain(config_of(stencil, layout, radius), comm::NodeHierarchy(MPI_COMM_SELF))),
        in_(domain_, nullptr),
        out_(domain_, nullptr) {}

  comm::DirectionSet needed() const { return domain_.needed(); }

  /// Returns the number of owned values that are NaN after a step with NaN in the ghosts of these
  /// directions.
  std::int64_t spoilt_by(const comm::DirectionSet& poisoned) {
    set_wave(domain_, in_);
    set_outer_ghosts(domain_, in_, spec_, kDiffusionNumber, 0);
    const auto nan = std::numeric_limits<double>::quiet_NaN();
    for_each_element(domain_, in_, [&](double& value, const ElementMap::Place& place) {
      if (!place.owned && poisoned.contains(comm::Direction::from_index(place.ghost))) value = nan;
    });
    advance(domain_, spec_, kDiffusionNumber, in_, out_);
    std::int64_t spoilt = 0;
    for_each_element(domain_, out_, [&](double& value, const ElementMap::Place& place) {
      spoilt += place.owned && std::isnan(value);
    });
    return spoilt;
  }

  bool is_exact() const {
    return check_wave(domain_, out_, spec_, kDiffusionNumber, 1, MPI_COMM_WORLD).passed();
  }

 private:
  static Config config_of(Stencil stencil, Layout layout, int radius) {
    Config config;
    config.local = {7, 6, 8};
    config.radius = radius;
    config.fields = 2;
    config.layout = layout;
    config.stencil = stencil;
    config.periodic = false;
    config.pad = layout == Layout::soa ? Pad::by64 : Pad::none;
    return config;
  }

  StencilSpec spec_;
  Domain domain_;
  FieldSet<double> in_, out_;
};

template <class Body>
void for_each_stencil(Body body) {
  for (const auto& [stencil, name] : EnumNames<Stencil>::table)
    for (const auto layout : {Layout::soa, Layout::aos})
      for (const int wider : {0, 1}) {
        SCOPED_TRACE(name);
        OneStep step(stencil, layout, stencil_spec(stencil).radius() + wider);
        body(step);
      }
}

class Ghosts : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    Kokkos::initialize(
        Kokkos::InitializationSettings().set_num_threads(dtype::limit_kokkos_threads(1)));
  }
  static void TearDownTestSuite() { Kokkos::finalize(); }
};

TEST_F(Ghosts, ThatAStencilDoesNotDeclareAreNotRead) {
  for_each_stencil([](OneStep& step) {
    auto others = comm::DirectionSet::all();
    comm::for_each_direction([&](comm::Direction direction) {
      if (step.needed().contains(direction)) others.erase(direction);
    });
    EXPECT_EQ(step.spoilt_by(others), 0);
    EXPECT_TRUE(step.is_exact());
  });
}

TEST_F(Ghosts, ThatAStencilDeclaresAreRead) {
  for_each_stencil([](OneStep& step) {
    comm::for_each_direction([&](comm::Direction direction) {
      if (!step.needed().contains(direction)) return;
      EXPECT_GT(step.spoilt_by(only(direction)), 0) << "direction " << direction.index();
    });
  });
}

TEST_F(Ghosts, AreDeclaredByLinesAndWeights) {
  const auto needed = [](Stencil stencil) { return needed_neighbors(stencil_spec(stencil)); };
  EXPECT_EQ(needed(Stencil::heat3), comm::DirectionSet::along_at_most(1));
  EXPECT_EQ(needed(Stencil::heat9), comm::DirectionSet::along_at_most(2));
  EXPECT_EQ(needed(Stencil::heat13), comm::DirectionSet::all());
  EXPECT_EQ(needed(Stencil::point26), comm::DirectionSet::all());
  // A stencil of diagonals alone reads beyond faces and edges, too.
  const StencilSpec diagonals{{0, 0, 1}, stencil_spec(Stencil::point26).coefficients, 13};
  EXPECT_EQ(needed_neighbors(diagonals), comm::DirectionSet::all());
  const StencilSpec lines{{0, 1, 0}, stencil_spec(Stencil::point26).coefficients, 4};
  EXPECT_EQ(needed_neighbors(lines).size(), 6);  // (1,1,0), its opposite, and their four faces
}

// One wrong value must be seen, in whichever field it is. There are many fields: a pass over all
// elements for each field would not end.
TEST_F(Ghosts, WaveIsCheckedInEachField) {
  for (const auto& [layout, fields, element] : {std::tuple{Layout::soa, 3, Element::float64},
                                                {Layout::soa, 65, Element::float64},
                                                {Layout::aos, 3, Element::complex64},
                                                {Layout::aos, 65536, Element::float64},
                                                {Layout::soa, 3, Element::complex64}}) {
    Config config;
    config.element = element;
    config.local = {2, 1, 1};
    config.radius = 1;
    config.fields = fields;
    config.layout = layout;
    config.stencil = Stencil::point26;
    const auto domain = make_domain(config, comm::NodeHierarchy(MPI_COMM_SELF));
    const FieldSet<double> set(domain, nullptr);
    set_wave(domain, set);
    const auto passed = [&] {
      return check_wave(domain, set, stencil_spec(config.stencil), kDiffusionNumber, 0,
                        MPI_COMM_WORLD)
          .passed();
    };
    EXPECT_TRUE(passed());
    for (const auto& [wrong, part] : {std::pair{0, 0}, {1, domain.parts - 1}, {fields - 1, 0}}) {
      double* found = nullptr;
      for_each_element(
          domain, set,
          [&, field = wrong, number = part](double& value, const ElementMap::Place& place) {
            if (place.owned && place.field == field && place.part == number) found = &value;
          });
      ASSERT_NE(found, nullptr);
      const auto right = std::exchange(*found, *found + 1e-6);
      EXPECT_FALSE(passed()) << "field " << wrong << " of " << fields;
      *found = std::numeric_limits<double>::quiet_NaN();
      EXPECT_FALSE(passed()) << "field " << wrong << " of " << fields;
      *found = right;
    }
  }
}

/// Wraps a periodic domain of one rank, in some directions.
class Wrapped {
 public:
  Wrapped(Neighbors neighbors, bool periodic) : Wrapped(config_of(neighbors, periodic)) {}
  explicit Wrapped(const Config& config)
      : domain_(make_domain(config, comm::NodeHierarchy(MPI_COMM_SELF))),
        fields_(domain_, nullptr) {}

  const Domain& domain() const { return domain_; }

  /// Copies the ghosts of each array in the directions `filled`. Tells if that passes as an
  /// exchange.
  bool passes(const std::vector<comm::DirectionSet>& filled) const {
    const auto wrap_each = [&] {
      wrap([&](int field, comm::Direction direction) {
        return filled[static_cast<std::size_t>(field)].contains(direction);
      });
    };
    return !check_exchange(domain_, fields_, comm::HaloShape::direct, 1, wrap_each, MPI_COMM_WORLD);
  }

  /// Copies the ghosts in the directions `filled` and adds `error` to those in `wrong`. Tells if
  /// that passes as an exchange of shape `shape`.
  bool passes(comm::HaloShape shape, const comm::DirectionSet& filled,
              const comm::DirectionSet& wrong = {}, double error = 0) const {
    return !check_exchange(
        domain_, fields_, shape, 1, [&] { wrap(filled, wrong, error); }, MPI_COMM_WORLD);
  }

  /// Fills all ghosts and writes to one element of padding. Tells if that passes as an exchange.
  bool passes_with_padding_written(std::int64_t z, std::int64_t y, std::int64_t e) const {
    const auto write = [&] {
      wrap(comm::DirectionSet::all(), {}, 0);
      array_of(fields_, 0)(z, y, e) = 0;
    };
    return !check_exchange(domain_, fields_, comm::HaloShape::direct, 1, write, MPI_COMM_WORLD);
  }

  /// Fills the ghosts in the same way around a wave. Tells if they match the wave.
  bool match(const comm::DirectionSet& filled, const comm::DirectionSet& wrong = {},
             double error = 0) const {
    set_wave(domain_, fields_);
    wrap(filled, wrong, error);
    return ghosts_match(domain_, fields_, MPI_COMM_WORLD);
  }

 private:
  void wrap(const comm::DirectionSet& filled, const comm::DirectionSet& wrong, double error) const {
    wrap([&](int, comm::Direction direction) { return filled.contains(direction); }, wrong, error);
  }
  void wrap(const std::function<bool(int field, comm::Direction)>& is_filled,
            const comm::DirectionSet& wrong = {}, double error = 0) const {
    std::map<std::uint64_t, double> owned;
    const ElementMap any_map(domain_, 0);
    for_each_element(domain_, fields_, [&](double& value, const ElementMap::Place& place) {
      if (place.owned) owned[any_map.global_index(place)] = value;
    });
    for_each_element(domain_, fields_, [&](double& value, const ElementMap::Place& place) {
      const auto direction = comm::Direction::from_index(place.ghost);
      if (place.owned || place.outside || !is_filled(place.field, direction)) return;
      value = owned.at(any_map.global_index(place)) + (wrong.contains(direction) ? error : 0);
    });
  }

  static Config config_of(Neighbors neighbors, bool periodic) {
    Config config;
    config.subcommand = Subcommand::compare;
    config.local = {4, 5, 3};
    config.radius = 2;
    config.fields = 2;
    config.neighbors = neighbors;
    config.periodic = periodic;
    return config;
  }

  Domain domain_;
  FieldSet<double> fields_;
};

TEST_F(Ghosts, ThatAreNeededHaveToBeFilled) {
  const auto faces = comm::DirectionSet::along_at_most(1),
             edges = comm::DirectionSet::along_at_most(2), all = comm::DirectionSet::all();
  for (const auto shape : {comm::HaloShape::direct, comm::HaloShape::axes}) {
    const Wrapped eighteen(Neighbors::eighteen, true);
    EXPECT_TRUE(eighteen.passes(shape, edges));
    EXPECT_FALSE(eighteen.passes(shape, faces));
    EXPECT_FALSE(eighteen.passes(shape, edges, only(comm::Direction::from_index(1)), 1e-15));
    // The corners are not among the 18 neighbours, but the slabs of shape axes contain them.
    EXPECT_EQ(eighteen.passes(shape, all), shape == comm::HaloShape::axes);
    EXPECT_FALSE(eighteen.passes(shape, all, only(comm::Direction::from_index(0)), 1));
    // With 6 neighbours, a slab has nothing but its face.
    EXPECT_TRUE(Wrapped(Neighbors::six, true).passes(shape, faces));
    EXPECT_FALSE(Wrapped(Neighbors::six, true).passes(shape, edges));
    EXPECT_TRUE(Wrapped(Neighbors::all, true).passes(shape, all));
    EXPECT_FALSE(Wrapped(Neighbors::all, true).passes(shape, edges));
    // Beyond open boundaries, no ghost is filled.
    EXPECT_TRUE(Wrapped(Neighbors::all, false).passes(shape, {}));
  }
}

TEST_F(Ghosts, PaddingHasToStayAsItWas) {
  for (const auto layout : {Layout::soa, Layout::aos}) {
    Config config;
    config.subcommand = Subcommand::compare;
    config.local = {4, 5, 3};
    config.fields = 3;
    config.layout = layout;
    config.pad = Pad::by64;
    const Wrapped padded(config);
    const auto& domain = padded.domain();
    const std::int64_t per_point = domain.elements_per_point(),
                       row = domain.halo.stored()[0] * per_point,
                       next_row = domain.extents_in_memory()[0] * per_point;
    ASSERT_LT(row, next_row);
    EXPECT_TRUE(padded.passes(comm::HaloShape::direct, comm::DirectionSet::all()));
    for (const auto e : {row, next_row - 1}) {
      EXPECT_FALSE(padded.passes_with_padding_written(0, 0, e));
      EXPECT_FALSE(padded.passes_with_padding_written(8, 10, e));
    }
  }
}

TEST_F(Ghosts, OfEachFieldAreThoseThatItNeeds) {
  Config config;
  config.subcommand = Subcommand::compare;
  config.physics = "mhd";
  config.local = {4, 5, 3};
  const Wrapped fields(config);
  auto filled = fields.domain().needs;
  EXPECT_TRUE(fields.domain().needs_differ());
  EXPECT_TRUE(fields.passes(filled));
  for (auto& of_field : filled)
    comm::for_each_direction([&](comm::Direction direction) {
      const auto right = of_field;
      if (right.contains(direction))
        of_field.erase(direction);
      else
        of_field.insert(direction);
      EXPECT_FALSE(fields.passes(filled)) << "direction " << direction.index();
      of_field = right;
    });
}

TEST_F(Ghosts, ThatAreNeededHaveToMatch) {
  const auto edges = comm::DirectionSet::along_at_most(2), all = comm::DirectionSet::all();
  const Wrapped eighteen(Neighbors::eighteen, true);
  EXPECT_TRUE(eighteen.match(edges));
  EXPECT_TRUE(eighteen.match(all, only(comm::Direction::from_index(0)), 1));
  EXPECT_FALSE(eighteen.match(comm::DirectionSet::along_at_most(1)));
  comm::for_each_direction([&](comm::Direction direction) {
    EXPECT_FALSE(Wrapped(Neighbors::all, true).match(all, only(direction), 1e-15));
  });
  EXPECT_TRUE(Wrapped(Neighbors::all, false).match({}));
}

}  // namespace
}  // namespace halocline::app
