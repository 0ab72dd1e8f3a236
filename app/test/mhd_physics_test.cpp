// SPDX-License-Identifier: BSD-3-Clause
// Tests magnetohydrodynamics as a physics: initial states with their exact solutions, the force,
// the choice of steps, and going on from a state. The test runs on any number of ranks.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "field_views.hpp"
#include "physics.hpp"
#include "physics/mhd/initial.hpp"
#include "physics/mhd/measure.hpp"
#include "session.hpp"
#include "support/error.hpp"
#include "support/mpi_check.hpp"
#include "verify.hpp"

namespace halocline::app::mhd {
namespace {

using Settings = std::map<std::string, double>;
using Measured = std::map<std::string, double, std::less<>>;

constexpr double kTurn = 2 * std::numbers::pi;

double number_of(Initial initial) {
  return static_cast<double>(initial);
}

// Returns the configuration of a box with side 2 pi along x.
Config config_of(const Settings& settings, const comm::Int3& points = {16, 16, 16}) {
  Config config;
  config.physics = "mhd";
  config.global = points;
  config.methods = {comm::Exchange::p2p};
  config.parameters["mhd.spacing"] = kTurn / static_cast<double>(points[0]);
  for (const auto& [name, value] : settings) config.parameters["mhd." + name] = value;
  config.fields = physics_of(config).fields(config);
  return config;
}

/// Runs a physics as `run` does, without overlap.
template <class T>
class Simulated {
 public:
  explicit Simulated(const Config& config, MPI_Comm comm = MPI_COMM_WORLD)
      : config_(with_all_ghosts(config)),
        comm_(comm),
        domain_(make_domain(config_, comm::NodeHierarchy(comm))),
        info_(physics_of(config_).info(config_)),
        physics_(make_physics<T>(config_, domain_)),
        sets_{HaloFields<T>(config_, domain_, storage(), comm),
              HaloFields<T>(config_, domain_, storage(), comm)},
        plans_{plan(sets_[0]), plan(sets_[1])} {
    physics_->set_initial(fields());
  }

  Physics<T>& physics() { return *physics_; }
  const Domain& domain() const { return domain_; }
  const FieldSet<T>& fields() const { return sets_[now()].fields(); }
  std::uint64_t hash() const { return state_hash(domain_, fields(), comm_); }

  void advance(int steps) {
    if (substep_ == 0 && info_.chooses_steps) {
      plans_[now()].start().finish();
      physics_->observe(-1, fields(), comm_);
    }
    const std::array whole{domain_.halo.interior()};
    for (int i = 0; i < steps * info_.substeps; ++i) {
      plans_[now()].start().finish();
      const auto &in = fields(), &out = sets_[1 - now()].fields();
      physics_->observe(substep_, in, comm_);
      physics_->start(substep_, in, out, 0, whole);
      physics_->finish(out);
      ++substep_;
    }
  }
  /// Goes on from the fields and the state of another simulation of the same domain.
  void go_on_from(Simulated& other) {
    substep_ = other.substep_;
    for (int a = 0; a < fields().arrays(); ++a)
      Kokkos::deep_copy(array_of(fields(), a), array_of(other.fields(), a));
    physics_->restore(other.physics_->state());
  }
  void reload(const Config& config) {
    exchange_all();
    physics_->reload(config, fields(), comm_);
  }
  std::optional<SolutionCheck> check() { return physics_->check(fields(), substep_, comm_); }

  Measured measure() {
    exchange_all();
    const auto numbers = physics_->measure(fields(), comm_);
    EXPECT_EQ(numbers.size(), info_.measures.size());
    Measured out;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      out[std::string(info_.measures[i])] = numbers[i];
    return out;
  }

  /// Calls body(values, curl of u) for each owned point.
  template <class Body>
  void for_each_flow(Body body) {
    exchange_all();
    const auto [begin, extent] = domain_.halo.interior();
    const auto extents = domain_.extents_in_memory();
    const Strides strides{1, extents[0], extents[0] * extents[1]};
    const auto w = weights<double>(info_.spacing);
    for (auto z = begin[2]; z < begin[2] + extent[2]; ++z)
      for (auto y = begin[1]; y < begin[1] + extent[1]; ++y)
        for (auto x = begin[0]; x < begin[0] + extent[0]; ++x) {
          const auto at = [&](int field) {
            return Around<double>{&array_of(fields(), field)(z, y, x)};
          };
          body(Vec3<double>{at(kUx)[0], at(kUy)[0], at(kUz)[0]},
               curl(at(kUx), at(kUy), at(kUz), strides, w));
        }
  }

 private:
  static Storage storage() { return storage_for(comm::Method{comm::Exchange::p2p}, Memory::host); }
  comm::ExchangePlan plan(const HaloFields<T>& set) const {
    return {comm_,
            set.jobs(comm::HaloShape::direct),
            config_.methods.front(),
            {.nodes = &domain_.nodes}};
  }
  // measure() and reload() need the ghosts of all directions.
  static Config with_all_ghosts(Config config) {
    config.neighbors = Neighbors::all;
    return config;
  }
  void exchange_all() { plans_[now()].start().finish(); }
  std::size_t now() const { return static_cast<std::size_t>(substep_ % 2); }

  Config config_;
  MPI_Comm comm_;
  Domain domain_;
  PhysicsInfo info_;
  std::unique_ptr<Physics<T>> physics_;
  HaloFields<T> sets_[2];
  comm::ExchangePlan plans_[2];
  std::int64_t substep_ = 0;
};

const Settings kBeltrami{{"initial", number_of(Initial::beltrami)}, {"amplitude", .5}};
const Settings kAlfven{
    {"initial", number_of(Initial::alfven)}, {"amplitude", .1}, {"b0x", 1}, {"eta", 8e-3}};

Settings with(Settings settings, const Settings& more) {
  for (const auto& [name, value] : more) settings[name] = value;
  return settings;
}

// T4 and T5: the numbers of an independent program.
TEST(CircularWave, HasTheNumbersOfTheTables) {
  Parameters p;
  p.eta = .05;
  p.nu = 0;
  auto field = CircularWave::beltrami(kTurn / 16, .5, {16, 16, 16});
  for (int step = 0; step < 100; ++step) field.advance(p, .02);
  EXPECT_NEAR(field.value(kAx, {0, 0, 4}, p), .5 * 0.904837996563, 1e-12);
  EXPECT_NEAR(field.value(kAy, {0, 0, 0}, p), .5 * 0.904837996563, 1e-12);
  EXPECT_NEAR(field.value(kS, {0, 0, 0}, p), 0.010693837648812, 3e-12);
  p.b0 = {1, 0, 0};
  p.mu0 = 1;
  p.nu = p.eta = 5e-3;
  auto wave = CircularWave::alfven(p, kTurn / 16, .1, {16, 16, 16});
  for (int step = 0; step < 64; ++step) wave.advance(p, kTurn / 64);
  EXPECT_NEAR(std::hypot(wave.state()[2], wave.state()[3]) / .1, 0.968832926476, 2e-12);
  EXPECT_NEAR(wave.value(kS, {0, 0, 0}, p), 4.0574e-4, 6e-9);
}

// The fields follow the solution through fixed and chosen steps, for unequal diffusivities, too.
TEST(Initial, FollowsItsExactSolution) {
  const Settings uniform{{"initial", number_of(Initial::uniform)}, {"b0y", .3}, {"lnrho0", .7}};
  const Settings other_gas{{"lnrho0", .4}, {"cp", 2}, {"mu0", 1.7}, {"b0x", -.6}};
  for (const auto& settings :
       {kBeltrami, kAlfven, uniform, with(kBeltrami, {{"b0z", .4}}), with(kAlfven, other_gas),
        with(kAlfven, {{"dt", .02}}), with(kBeltrami, {{"dt", .02}, {"entropy", 0}}),
        with(kAlfven, {{"upwind", 1}})}) {
    Simulated<double> run(config_of(settings, {16, 12, 14}));
    run.advance(10);
    const auto check = run.check();
    ASSERT_TRUE(check);
    EXPECT_LT(check->error, 1e-14);
    EXPECT_TRUE(check->passed());
    // One wrong point on the last rank.
    if (run.domain().rank == run.domain().decomposition.size() - 1)
      array_of(run.fields(), 0)(4, 4, 4) += 1e-9;
    EXPECT_FALSE(run.check()->passed());
  }
  auto config = config_of(kAlfven);
  config.element = Element::float32;
  Simulated<float> run(config);
  run.advance(10);
  EXPECT_TRUE(run.check()->passed());
}

TEST(Initial, KnowsNoSolutionWithOtherForces) {
  for (const auto& settings :
       {with(kBeltrami, {{"b0x", 1}}), with(kAlfven, {{"b0z", 1}}),
        with(kAlfven, {{"forcing", .1}}), Settings{{"initial", number_of(Initial::random)}}}) {
    Simulated<double> run(config_of(settings));
    run.advance(1);
    EXPECT_FALSE(run.check());
    if (run.domain().rank == 0) array_of(run.fields(), 0)(4, 4, 4) = std::nan("");
    ASSERT_TRUE(run.check());
    EXPECT_FALSE(run.check()->passed());
  }
}

TEST(Initial, MakesAnExplosionAroundTheMiddle) {
  Simulated<double> run(config_of({{"initial", number_of(Initial::explosion)},
                                   {"amplitude", 2},
                                   {"shell-radius", kTurn / 4},
                                   {"shell-width", .3}}));
  const auto m = run.measure();
  EXPECT_NEAR(m.at("u_max"), 2, 1e-14);  // a point of the shell lies on the grid
  EXPECT_EQ(m.at("u_min"), 0);           // the middle
  for (const auto* momentum : {"momentum_x", "momentum_y", "momentum_z"})
    EXPECT_NEAR(m.at(momentum), 0, 1e-3 * m.at("e_kinetic"));
  EXPECT_NEAR(m.at("mass"), std::pow(kTurn, 3), 1e-10);
}

TEST(Initial, MakesRandomEddies) {
  auto config =
      config_of({{"initial", number_of(Initial::random)}, {"amplitude", .3}}, {32, 32, 32});
  config.seed = 5;
  Simulated<double> run(config);
  const auto m = run.measure();
  EXPECT_NEAR(m.at("u_rms"), .3, .1);
  EXPECT_NEAR(m.at("b_rms"), .3, .1);
  EXPECT_LT(m.at("div_b_max"), 1e-13);
  EXPECT_EQ(run.hash(), Simulated<double>(config, MPI_COMM_SELF).hash());
  config.seed = 6;
  EXPECT_NE(run.hash(), Simulated<double>(config, MPI_COMM_SELF).hash());
}

const Settings kForced{{"initial", number_of(Initial::uniform)}, {"forcing", .1}, {"dt", .02}};

// A gas at rest has the velocity of the force after the first step.
TEST(Forcing, HasItsSizeAndHelicity) {
  for (const double helicity : {1.0, -1.0, 0.0}) {
    Simulated<double> run(config_of(with(kForced, {{"forcing-helicity", helicity}, {"cs0", 2}})));
    run.advance(1);
    const auto m = run.measure();
    EXPECT_NEAR(m.at("u_rms"), .1 * 2 * std::sqrt(2 * .02 / 2), 1e-14);
    for (const auto* momentum : {"momentum_x", "momentum_y", "momentum_z"})
      EXPECT_NEAR(m.at(momentum), 0, 1e-14);
    double helicities = 0, squares = 0, all = 0;
    run.for_each_flow([&](const Vec3<double>& u, const Vec3<double>& curl_u) {
      helicities += dot(u, curl_u);
      squares += dot(u, u);
      if (helicity == 0) return;
      const auto off = curl_u - scaled(helicity * 0.999974578270039, u);  // k' of one wave
      EXPECT_LT(dot(off, off), 1e-28);
    });
    HALOCLINE_MPI(MPI_Allreduce(&helicities, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    if (helicity == 0) {
      EXPECT_LT(std::abs(all), 1e-12);
    }
    EXPECT_GT(squares, 0);
  }
}

TEST(Forcing, IsTheSameOnAllRanksAndNewInEachStep) {
  const auto settings = with(kForced, {{"initial", number_of(Initial::random)},
                                       {"forcing-k-min", 1},
                                       {"forcing-k-max", 3},
                                       {"forcing-helicity", .5}});
  auto config = config_of(settings, {13, 11, 17});
  Simulated<double> all(config), one(config, MPI_COMM_SELF);
  all.advance(3);
  one.advance(3);
  EXPECT_EQ(all.hash(), one.hash());
  config.layout = Layout::aos;
  Simulated<double> aos(config);
  aos.advance(3);
  EXPECT_EQ(aos.hash(), one.hash());
  config.seed = 2;
  Simulated<double> other(config);
  other.advance(3);
  EXPECT_NE(other.hash(), one.hash());

  // At rest the velocity is the sum of two forces after two steps. Equal ones would double it.
  Simulated<double> still(config_of(with(kForced, {{"forcing", 1e-6}})));
  still.advance(1);
  const double first = still.measure().at("u_rms");
  still.advance(1);
  EXPECT_LT(still.measure().at("u_rms"), 1.99 * first);
}

TEST(State, LetsAnotherRunGoOn) {
  for (const auto& settings :
       {kAlfven, with(kForced, {{"dt", 0}, {"initial", number_of(Initial::waves)}})}) {
    Simulated<double> whole(config_of(settings)), half(config_of(settings)),
        rest(config_of(settings));
    whole.advance(4);
    half.advance(2);
    rest.go_on_from(half);
    rest.advance(2);
    EXPECT_EQ(rest.hash(), whole.hash());
    EXPECT_EQ(rest.physics().state(), whole.physics().state());
    EXPECT_EQ(rest.check().has_value(), whole.check().has_value());
    if (rest.check()) {
      EXPECT_TRUE(rest.check()->passed());
    }
  }
}

TEST(State, TakesOtherParameters) {
  Simulated<double> run(config_of(with(kAlfven, {{"dt", .02}})));
  run.advance(1);
  run.reload(config_of(with(kAlfven, {{"dt", .01}, {"nu", .05}})));
  run.advance(2);
  EXPECT_EQ(run.physics().clock(9).dt, .01);
  EXPECT_NEAR(run.physics().clock(9).time, .04, 1e-15);
  EXPECT_TRUE(run.check()->passed());
  // Neither parameters of other fields nor ones that are not stable change anything.
  for (const Settings& wrong : {Settings{{"dt", .005}, {"entropy", 0}},
                                Settings{{"dt", .005}, {"shock", 1}}, Settings{{"dt", 9}}}) {
    EXPECT_THROW(run.reload(config_of(with(kAlfven, wrong))), ConfigError);
    run.advance(1);
    EXPECT_EQ(run.physics().clock(9).dt, .01);
  }
  EXPECT_TRUE(run.check()->passed());
}

TEST(Steps, RefuseWhatIsNotStable) {
  auto config = config_of({{"dt", .2}});
  const auto text_of = [](const Config& of) -> std::string {
    Simulated<double> run(of);
    try {
      run.advance(1);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  const auto text = text_of(config);
  EXPECT_TRUE(
      text.starts_with("mhd.dt is not stable (mhd.dt 0.2, some wave grows in steps above 0."))
      << text;
  const double limit = std::stod(text.substr(text.find("above ") + 6));
  EXPECT_GT(limit, .01);
  config.parameters["mhd.dt"] = .99 * limit;
  EXPECT_EQ(text_of(config), "");
  config.parameters["mhd.dt"] = .2;
  config.force_dt = true;
  EXPECT_EQ(text_of(config), "");
}

TEST(Info, SaysWhatDoesNotSuit) {
  const auto text_of = [](const Settings& settings) -> std::string {
    try {
      physics_of(config_of(settings)).info(config_of(settings));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_TRUE(text_of(with(kBeltrami, {{"magnetic", 0}})).starts_with("mhd.initial needs a mag"));
  EXPECT_TRUE(text_of(with(kAlfven, {{"b0x", 0}})).starts_with("mhd.initial alfven needs"));
  EXPECT_TRUE(
      text_of(with(kForced, {{"forcing-k-max", .9}})).starts_with("mhd.forcing-k-max leaves"));
  EXPECT_TRUE(text_of({{"forcing-k-max", 101}}).starts_with("mhd.forcing-k-max is too large"));
  const auto notes_of = [](const Settings& settings) {
    return physics_of(config_of(settings)).info(config_of(settings)).notes;
  };
  EXPECT_TRUE(notes_of({}).empty());
  EXPECT_TRUE(notes_of({{"cs0", 1.1}, {"entropy", 0}}).empty());
  ASSERT_EQ(notes_of({{"cs0", 1.1}}).size(), 1u);
  EXPECT_TRUE(
      notes_of({{"cs0", 1.1}}).front().starts_with("energy is not conserved: mhd.cs0^2 is 1.21"));
}

}  // namespace
}  // namespace halocline::app::mhd
