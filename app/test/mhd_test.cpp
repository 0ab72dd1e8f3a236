// SPDX-License-Identifier: BSD-3-Clause
// Tests magnetohydrodynamics against solutions that are known to the last digits.
//
// In a periodic box a plane wave is an eigenvector of every difference. So the amplitude of the
// discrete solution is known: n steps multiply it by (1 + z + z^2/2 + z^3/6)^n. The numbers in the
// tables come from an independent serial program. The test runs on any number of ranks.
//
// Variables of the environment choose the largest box, the method and the memory of the fields.
// test_mhd_methods.py runs the tests with each method.
#include "physics/mhd/mhd.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iomanip>
#include <limits>
#include <numbers>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "field_views.hpp"
#include "physics/mhd/measure.hpp"
#include "session.hpp"
#include "support/mpi_check.hpp"
#include "verify.hpp"

namespace halocline::app::mhd {
namespace {

using Complex = std::complex<double>;
using Point = std::array<double, 3>;
/// Is the value of each field at a point.
using Values = std::array<double, kFields>;
/// Returns the values at the point (x, y, z).
using Function = std::function<Values(double x, double y, double z)>;

// Returns the points along each side of the largest boxes. results/mhd.py sets the variable.
std::int64_t most_points() {
  if (const char* const text = std::getenv("HALOCLINE_MHD_POINTS")) return std::atoll(text);
#ifdef __SANITIZE_ADDRESS__
  return 16;  // larger boxes would take minutes
#else
  return 32;
#endif
}
const std::int64_t kMostPoints = most_points();

// Returns the method that exchanges all boxes.
comm::Method method_of_boxes() {
  const char* const text = std::getenv("HALOCLINE_MHD_METHOD");
  return text ? comm::parse_method(text) : comm::Method(comm::Exchange::p2p);
}

// Returns the memory in which all boxes are exchanged and computed.
Memory memory_of_boxes() {
  const char* const text = std::getenv("HALOCLINE_MHD_MEMORY");
  return from_string<Memory>(text ? text : "host").value();
}

// Returns the larger number. A NaN counts as infinite, so that no comparison loses it.
double worse(double a, double b) {
  if (std::isnan(b)) return std::numeric_limits<double>::infinity();
  return std::max(a, b);
}

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// Expects `expected` but for a part of it, or any number if it is kUnknown. results/mhd.py reads
// both from the file of --gtest_output=json.
void expect(double value, double expected, double part, const std::string& name,
            std::int64_t points) {
  EXPECT_TRUE(std::isnan(expected) || std::abs(value / expected - 1) <= part)
      << name << ", " << points << ": " << value << ", not " << expected;
  std::ostringstream both;
  both << std::setprecision(10) << value << ' ' << expected;
  testing::Test::RecordProperty(name + " " + std::to_string(points), both.str());
}

constexpr double kTurn = 2 * std::numbers::pi;

Parameters ideal() {
  Parameters out;
  out.mu0 = 1;
  out.nu = out.zeta = out.eta = out.conduction = 0;
  return out;
}

Config config_of(std::int64_t points) {
  Config config;
  config.global = {points, points, points};
  return config;
}

/// Advances a periodic box of side 2 pi. A field without an equation reads as 0. Fields in device
/// memory have copies on the host, which each member function renews.
template <class T>
class PeriodicBox {
 public:
  PeriodicBox(const Config& config, const Parameters& parameters, MPI_Comm comm = MPI_COMM_WORLD)
      : config_(with_fields(config, parameters)),
        parameters_(parameters),
        comm_(comm),
        domain_(make_domain(config_, comm::NodeHierarchy(comm))),
        spacing_(spacing_of(*config_.global)),
        sets_{HaloFields<T>(config_, domain_, storage(), comm),
              HaloFields<T>(config_, domain_, storage(), comm)},
        plans_{plan(sets_[0]), plan(sets_[1])} {}

  const Domain& domain() const { return domain_; }
  const FieldSet<T>& fields() const { return sets_[now_].fields(); }
  const FieldSet<T>& other() const { return sets_[1 - now_].fields(); }
  const std::array<double, 3>& spacing() const { return spacing_; }
  double h() const { return spacing_[0]; }
  std::uint64_t hash() const { return state_hash(domain_, fields(), comm_); }

  void exchange() {
    fields().to_device();
    plans_[now_].start().finish();
    fields().from_device();
  }

  void set(const Function& function) {
    for_each([&](const Point& at, const Values&) { return function(at[0], at[1], at[2]); });
  }

  void advance(int steps, double dt) {
    const std::array whole{domain_.halo.interior()};
    for (int step = 0; step < steps; ++step)
      for (int stage = 0; stage < Substep::kOfStep; ++stage) {
        exchange();
        start_substep<T>(domain_, parameters_, spacing(), {stage, dt}, fields(), other(),
                         boxes_.empty() ? std::span<const comm::Box>(whole) : boxes_);
        finish_substep(other());
        other().from_device();
        now_ = 1 - now_;
      }
  }
  /// Sets other() to the rates of the fields, whose ghosts are read.
  void set_rates(const Parameters& parameters) {
    fields().to_device();
    mhd::set_rates(domain_, parameters, spacing_, fields(), other());
    other().from_device();
  }
  /// Computes each substep in these parts from now on.
  void divide(std::vector<comm::Box> boxes) { boxes_ = std::move(boxes); }

  /// Returns the largest of body(place, values) over all points of all ranks.
  template <class Body>
  double largest(Body body) {
    double mine = 0;
    for_each([&](const Point& at, const Values& values) {
      mine = worse(mine, std::abs(body(at, values)));
      return values;
    });
    double all = 0;
    HALOCLINE_MPI(MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, comm_));
    return all;
  }
  /// Returns the sum of body(place, values) over all points of all ranks.
  template <class Body>
  double sum(Body body) {
    double mine = 0, all = 0;
    for_each([&](const Point& at, const Values& values) {
      mine += body(at, values);
      return values;
    });
    HALOCLINE_MPI(MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, comm_));
    return all;
  }
  /// Returns the largest deviation of one field from `expected(x, y, z)`.
  template <class Expected>
  double deviation(Field field, Expected expected) {
    return largest([&](const Point& at, const Values& values) {
      return values[field] - expected(at[0], at[1], at[2]);
    });
  }

  /// Returns the local values at an owned point. Needs ghosts.
  Local<T> local_at(const comm::Int3& stored) const {
    const T* at[kFields];
    for (int field = 0; field < kFields; ++field) at[field] = address(fields(), field, stored);
    const auto extent = domain_.extents_in_memory();
    const auto per_point = std::int64_t{domain_.elements_per_point()};
    const Strides strides{per_point, per_point * extent[0], per_point * extent[0] * extent[1]};
    return local_values<T>(at, strides, weights<T>(spacing()));
  }

  /// Returns the address of a point of a field, nullptr if the field has no equation.
  T* address(const FieldSet<T>& set, int field, const comm::Int3& p) const {
    const auto evolving = fields_of(parameters_.terms);
    const auto found = std::find(evolving.begin(), evolving.end(), field);
    if (found == evolving.end()) return nullptr;
    const auto number = static_cast<int>(found - evolving.begin());
    const auto per_point = std::int64_t{domain_.elements_per_point()};
    const auto array = array_of(set, per_point == 1 ? number : 0);
    return &array(p[2], p[1], p[0] * per_point + (per_point == 1 ? 0 : number));
  }
  Values values(const FieldSet<T>& set, const comm::Int3& stored) const {
    Values out{};
    for (int field = 0; field < kFields; ++field)
      if (const T* at = address(set, field, stored)) out[static_cast<std::size_t>(field)] = *at;
    return out;
  }

  template <class Body>
  void for_each_stored(Body body) const {
    const auto [begin, extent] = domain_.halo.interior();
    for (auto z = begin[2]; z < begin[2] + extent[2]; ++z)
      for (auto y = begin[1]; y < begin[1] + extent[1]; ++y)
        for (auto x = begin[0]; x < begin[0] + extent[0]; ++x) body(comm::Int3{x, y, z});
  }
  Point place(const comm::Int3& stored) const {
    Point out;
    for (std::size_t axis = 0; axis < 3; ++axis)
      out[axis] =
          spacing_[axis] * static_cast<double>(domain_.owned.begin[axis] + stored[axis] - kRadius);
    return out;
  }

 private:
  static Config with_fields(Config config, const Parameters& parameters) {
    config.fields = static_cast<int>(fields_of(parameters.terms).size());
    config.methods = {method_of_boxes()};
    config.memory = memory_of_boxes();
    return config;
  }
  static std::array<double, 3> spacing_of(const std::array<std::int64_t, 3>& points) {
    std::array<double, 3> out;
    for (std::size_t axis = 0; axis < 3; ++axis)
      out[axis] = kTurn / static_cast<double>(points[axis]);
    return out;
  }
  static Storage storage() { return storage_for(method_of_boxes(), memory_of_boxes()); }
  comm::ExchangePlan plan(const HaloFields<T>& set) const {
    return {comm_,
            set.jobs(comm::HaloShape::direct),
            config_.methods.front(),
            {.nodes = &domain_.nodes, .windows = set.windows()}};
  }
  template <class Body>
  void for_each(Body body) {
    for_each_stored([&](const comm::Int3& stored) {
      const auto next = body(place(stored), values(fields(), stored));
      for (int field = 0; field < kFields; ++field)
        if (T* const at = address(fields(), field, stored))
          *at = static_cast<T>(next[static_cast<std::size_t>(field)]);
    });
  }

  Config config_;
  Parameters parameters_;
  MPI_Comm comm_;
  Domain domain_;
  std::array<double, 3> spacing_;
  HaloFields<T> sets_[2];
  comm::ExchangePlan plans_[2];
  std::vector<comm::Box> boxes_;
  std::size_t now_ = 0;
};

/// Holds the symbols of the differences on N points: what they make of e^(i k x), h = 2 pi / N.
struct Symbols {
  double h;
  explicit Symbols(std::int64_t points) : h(kTurn / static_cast<double>(points)) {}
  /// Returns k', by which the first difference replaces k.
  double first(double k) const {
    const double t = k * h;
    return (1.5 * std::sin(t) - 0.3 * std::sin(2 * t) + std::sin(3 * t) / 30) / h;
  }
  /// Returns kappa, by which minus the second difference replaces k^2.
  double second(double k) const {
    const double t = k * h;
    return (49.0 / 18 - 3 * std::cos(t) + 0.3 * std::cos(2 * t) - std::cos(3 * t) / 45) / (h * h);
  }
  /// Returns the number by which minus the mixed difference replaces the product of ka and kb.
  double mixed(double ka, double kb) const {
    constexpr double kWeights[] = {270.0 / 720, -27.0 / 720, 2.0 / 720};
    double out = 0;
    for (int i = 1; i <= 3; ++i)
      out += 4 * kWeights[i - 1] * std::sin(i * ka * h) * std::sin(i * kb * h);
    return out / (h * h);
  }
};

/// Returns the factor of one Runge-Kutta step for the rate z / dt.
Complex growth(Complex z) {
  return 1.0 + z + z * z / 2.0 + z * z * z / 6.0;
}

TEST(Differences, HaveTheSymbolsOfTheirFormulas) {
  EXPECT_NEAR(Symbols(8).first(1), 0.998513154687014, 1e-15);
  EXPECT_NEAR(Symbols(16).second(1), 0.999993606244405, 1e-14);
  EXPECT_NEAR(Symbols(8).mixed(1, 1), 0.981689690401317, 1e-14);
  // sin(x + 2 y) on a plane of 16 x 16 points, differences at its middle.
  constexpr std::int64_t kPoints = 16;
  const Symbols symbol(kPoints);
  const auto w = weights<double>({symbol.h, symbol.h, symbol.h});
  std::array<double, kPoints * kPoints> wave;
  const auto phase = [&](std::int64_t i) {
    return symbol.h * static_cast<double>(i % kPoints + 2 * (i / kPoints));
  };
  for (std::int64_t i = 0; i < kPoints * kPoints; ++i)
    wave[static_cast<std::size_t>(i)] = std::sin(phase(i));
  constexpr std::int64_t kMiddle = 7 * kPoints + 8;
  const Around<double> middle{&wave[kMiddle]};
  const double sine = std::sin(phase(kMiddle)), cosine = std::cos(phase(kMiddle));
  EXPECT_NEAR(first(middle, 1, w.first[0]), symbol.first(1) * cosine, 1e-14);
  EXPECT_NEAR(first(middle, kPoints, w.first[1]), symbol.first(2) * cosine, 1e-14);
  EXPECT_NEAR(second(middle, 1, w.second[0]), -symbol.second(1) * sine, 1e-13);
  EXPECT_NEAR(second(middle, kPoints, w.second[1]), -symbol.second(2) * sine, 1e-13);
  EXPECT_NEAR(mixed(middle, 1, kPoints, w.mixed[0]), -symbol.mixed(1, 2) * sine, 1e-13);
}

// Returns the error of e^x in units in the last place of the exact value.
template <class T>
double units_off(T x) {
  const long double exact = std::exp(static_cast<long double>(x));
  const T nearest = static_cast<T>(exact);
  const long double unit = std::nextafter(nearest, std::numeric_limits<T>::infinity()) - nearest;
  return static_cast<double>(std::abs(static_cast<long double>(exponential<T>(x)) - exact) / unit);
}

template <class T>
class Exponential : public testing::Test {};
using Elements = testing::Types<double, float>;
TYPED_TEST_SUITE(Exponential, Elements);

TYPED_TEST(Exponential, IsExactToTwoUnits) {
  constexpr bool kDouble = sizeof(TypeParam) == sizeof(double);
  const TypeParam limit = kDouble ? 708 : 87;
  double worst = 0;
  for (int i = -100000; i <= 100000; ++i)
    worst = worse(worst, units_off(limit * static_cast<TypeParam>(i) / 100000));
  EXPECT_LE(worst, 2);
  EXPECT_EQ(exponential(limit + 1), exponential(limit));
  EXPECT_EQ(exponential(-limit - 1), exponential(-limit));
  EXPECT_EQ(exponential(TypeParam(0)), 1);
}

TYPED_TEST(Exponential, KeepsNan) {
  for (const char* payload : {"", "1", "123456"}) {
    const TypeParam nan =
        sizeof(TypeParam) == sizeof(double) ? std::nan(payload) : std::nanf(payload);
    EXPECT_TRUE(std::isnan(exponential<TypeParam>(nan)));
    EXPECT_TRUE(std::isnan(exponential<TypeParam>(-nan)));
  }
  EXPECT_TRUE(std::isnan(exponential(std::bit_cast<float>(0x7fffffffu))));
}

TYPED_TEST(Exponential, GivesEachLaneItsBits) {
  using V = Lanes<TypeParam>;
  // On the heap: g++ 12's sanitizer misjudges the bounds of such a small array on the stack.
  std::vector<TypeParam> in(kLanes<V>), out(kLanes<V>);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<TypeParam>(i) * 3.7F - 5;
  in.back() = 1e30F;
  store(exponential(load<V>(in.data())), out.data());
  for (std::size_t i = 0; i < in.size(); ++i) EXPECT_EQ(out[i], exponential<TypeParam>(in[i]));
}

// T1: a density wave in a uniform flow.
TEST(Mhd, AdvectsDensity) {
  struct Case {
    std::int64_t points;
    int steps;
    double factor, angle, error;
  };
  for (const auto& c : {Case{16, 25, 0.999932026483, -2.248486276983, 1.4978e-4},
                        Case{32, 51, 0.999991955394, -2.249974354499, 2.6873e-6}}) {
    if (c.points > kMostPoints) continue;
    auto parameters = ideal();
    parameters.cs0 = 0;
    PeriodicBox<double> box(config_of(c.points), parameters);
    box.set([](double x, double y, double z) {
      return Values{0.1 * std::sin(x + 2 * y + z), 1, 0.5, 0.25, 0, 0, 0, 0};
    });
    const double dt = 1.0 / c.steps;
    box.advance(c.steps, dt);
    const Symbols symbol(c.points);
    const auto g =
        growth({0, -dt * (symbol.first(1) + 0.5 * symbol.first(2) + 0.25 * symbol.first(1))});
    const auto all = std::pow(g, c.steps);
    EXPECT_NEAR(std::abs(all), c.factor, 1e-12);
    EXPECT_NEAR(std::arg(all), c.angle, 1e-12);
    const auto wave = [](Complex amplitude, double phase) {
      return 0.1 * std::imag(amplitude * std::polar(1.0, phase));
    };
    EXPECT_LE(box.deviation(kLnRho,
                            [&](double x, double y, double z) { return wave(all, x + 2 * y + z); }),
              2e-15);
    EXPECT_NEAR(box.deviation(kLnRho, [&](double x, double y,
                                          double z) { return wave(1.0, x + 2 * y + z - 2.25); }),
                c.error, 1e-4 * c.error);
    EXPECT_EQ(box.deviation(kUx, [](auto...) { return 1; }), 0);
    EXPECT_EQ(box.deviation(kUz, [](auto...) { return 0.25; }), 0);
  }
}

// T2: an oblique sound wave with both viscosities, which needs edges.
TEST(Mhd, DampsObliqueSound) {
  struct Case {
    std::int64_t points;
    int steps;
    double factor;
  };
  constexpr double kEps = 1e-6;
  constexpr Point kWave{1, 2, 1};
  for (const auto& c : {Case{16, 25, 0.900693080}, Case{32, 51, 0.901687471}}) {
    if (c.points > kMostPoints) continue;
    auto parameters = ideal();
    parameters.nu = 5e-3;
    parameters.zeta = 1e-2;
    PeriodicBox<double> box(config_of(c.points), parameters);
    const double dt = 2.0 / c.steps, length = std::sqrt(6.0);
    box.set([&](double x, double y, double z) {
      const double wave = kEps * std::sin(x + 2 * y + z);
      return Values{wave, wave / length, 2 * wave / length, wave / length, 0, 0, 0, 0};
    });
    box.advance(c.steps, dt);
    // The matrix of rates of (lnrho, u), applied to the amplitudes.
    const Symbols symbol(c.points);
    using Amplitudes = std::array<Complex, 4>;
    const auto rates_of = [&](const Amplitudes& a) {
      const Complex i{0, 1};
      Amplitudes out{};
      double kappa = 0;
      for (const double k : kWave) kappa += symbol.second(k);
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const double k = symbol.first(kWave[axis]);
        out[0] -= i * k * a[axis + 1];
        out[axis + 1] = -i * k * a[0] - parameters.nu * kappa * a[axis + 1];
        for (std::size_t other = 0; other < 3; ++other)
          out[axis + 1] -= (parameters.nu / 3 + parameters.zeta) *
                           (axis == other ? symbol.second(kWave[axis])
                                          : symbol.mixed(kWave[axis], kWave[other])) *
                           a[other + 1];
      }
      return out;
    };
    Amplitudes a{1, 1 / length, 2 / length, 1 / length};
    for (int step = 0; step < c.steps; ++step) {
      auto term = a;
      for (int order = 1; order <= 3; ++order) {
        term = rates_of(term);
        for (std::size_t k = 0; k < 4; ++k) a[k] += (term[k] *= dt / order);
      }
    }
    EXPECT_NEAR(std::abs(a[0]), c.factor, 1e-9);
    for (const auto field : {kLnRho, kUx, kUy, kUz})
      EXPECT_LT(box.deviation(field,
                              [&](double x, double y, double z) {
                                return kEps * std::imag(a[field] * std::polar(1.0, x + 2 * y + z));
                              }),
                5 * kEps * kEps);
  }
}

// T3: an oblique shear wave, which the mixed differences make slightly compressive.
TEST(Mhd, DecaysObliqueShear) {
  struct Case {
    std::int64_t points;
    int steps;
    double factor;
  };
  constexpr double kEps = 1e-6;
  for (const auto& c : {Case{8, 64, 0.904601519503}, Case{16, 127, 0.904832349913},
                        Case{32, 255, 0.904837332351}}) {
    if (c.points > kMostPoints) continue;
    auto parameters = ideal();
    parameters.nu = 5e-3;
    PeriodicBox<double> box(config_of(c.points), parameters);
    const auto shear = [](double x, double y, double) { return kEps * std::sin(x + y); };
    box.set([&](double x, double y, double z) {
      return Values{0, shear(x, y, z), -shear(x, y, z), 0, 0, 0, 0, 0};
    });
    const double dt = 10.0 / c.steps;
    box.advance(c.steps, dt);
    const Symbols symbol(c.points);
    const double kappa = symbol.second(1);
    const double rate = parameters.nu * (2 * kappa + (kappa - symbol.mixed(1, 1)) / 3);
    const double factor = std::pow(growth(-rate * dt).real(), c.steps);
    EXPECT_NEAR(factor, c.factor, 1e-11);
    EXPECT_LT(
        box.deviation(kUx, [&](double x, double y, double z) { return factor * shear(x, y, z); }),
        1e-8 * kEps);
    EXPECT_LT(
        box.deviation(kUy, [&](double x, double y, double z) { return -factor * shear(x, y, z); }),
        1e-8 * kEps);
  }
}

// T4: a Beltrami field decays, and heats the gas uniformly.
TEST(Mhd, DecaysBeltramiFieldAndHeats) {
  struct Case {
    std::int64_t points;
    double factor, entropy;
  };
  constexpr double kA = 0.5, kDt = 0.02;
  for (const auto& c :
       {Case{16, 0.904837996563, 0.010693837648812}, Case{32, 0.904837427236, 0.010693964583106}}) {
    if (c.points > kMostPoints) continue;
    auto parameters = ideal();
    parameters.eta = 0.05;
    parameters.mu0 = 1.4;
    PeriodicBox<double> box(config_of(c.points), parameters);
    box.set([](double, double, double z) {
      return Values{0, 0, 0, 0, kA * std::sin(z), kA * std::cos(z), 0, 0};
    });
    box.advance(100, kDt);
    const double kappa = Symbols(c.points).second(1);
    const double factor = std::pow(growth(-parameters.eta * kappa * kDt).real(), 100);
    EXPECT_NEAR(factor, c.factor, 1e-12);
    EXPECT_LE(
        box.deviation(kAx, [&](double, double, double z) { return factor * kA * std::sin(z); }),
        4e-15);
    EXPECT_LE(
        box.deviation(kAy, [&](double, double, double z) { return factor * kA * std::cos(z); }),
        4e-15);
    for (const auto field : {kUx, kUy, kUz})
      EXPECT_LE(box.deviation(field, [](auto...) { return 0; }), 2e-15);
    EXPECT_LE(box.deviation(kS, [&](auto...) { return c.entropy; }), 3e-12);
  }
}

// T5: a circularly polarised Alfven wave of finite amplitude, along an imposed field.
TEST(Mhd, CarriesAlfvenWave) {
  struct Case {
    std::int64_t points;
    double ideal, damped, entropy;
  };
  constexpr double kA = 0.1;
  for (const auto& c : {Case{16, 0.999753104433, 0.968832926476, 4.0574e-4},
                        Case{32, 0.999969059833, 0.969042421184, 4.0584e-4}})
    for (const bool damped : {false, true}) {
      if (c.points > kMostPoints) continue;
      auto parameters = ideal();
      parameters.b0 = {1, 0, 0};
      if (damped) parameters.nu = parameters.eta = 5e-3;
      PeriodicBox<double> box(config_of(c.points), parameters);
      const double kappa = Symbols(c.points).second(1), u = std::sqrt(kappa) * kA;
      box.set([&](double x, double, double) {
        return Values{0, 0, u * std::cos(x), u * std::sin(x), 0, kA * std::cos(x), kA * std::sin(x),
                      0};
      });
      const auto steps = static_cast<int>(4 * c.points);
      const double dt = kTurn / steps;
      box.advance(steps, dt);
      // u and A rotate together: a y-component is the real part of amplitude e^(i x).
      const double by_y =
          box.sum([](const Point& at, const Values& v) { return v[kAy] * std::cos(at[0]); });
      const double by_x =
          box.sum([](const Point& at, const Values& v) { return v[kAy] * std::sin(at[0]); });
      const double points = std::pow(static_cast<double>(c.points), 3);
      const double ratio = std::hypot(by_x, by_y) * 2 / points / kA;
      EXPECT_NEAR(ratio, damped ? c.damped : c.ideal, 2e-12);
      if (damped) {
        EXPECT_NEAR(box.sum([](const Point&, const Values& v) { return v[kS]; }) / points,
                    c.entropy, 6e-9);
      } else {
        EXPECT_LT(box.deviation(kUx, [](auto...) { return 0; }), 2e-15);
        EXPECT_LT(box.deviation(kLnRho, [](auto...) { return 0; }), 2e-15);
      }
    }
}

/// Holds the waves of T6: field q is amplitude sin(k . x + phase).
struct Waves {
  Values amplitude{.3, .2, -.25, .15, .3, .2, -.1, .25};
  static constexpr std::array<Point, 4> kWaves{{{1, 1, 1}, {1, -1, 1}, {1, 1, -1}, {-1, 1, 1}}};

  double phase(std::size_t q, const Point& at) const {
    const auto& k = kWaves[q % 4];
    return k[0] * at[0] + k[1] * at[1] + k[2] * at[2] + .1 + .4 * static_cast<double>(q);
  }
  double value(std::size_t q, const Point& at) const {
    return amplitude[q] * std::sin(phase(q, at));
  }
  Vec3<double> gradient(std::size_t q, const Point& at) const {
    const auto& k = kWaves[q % 4];
    const double slope = amplitude[q] * std::cos(phase(q, at));
    return {k[0] * slope, k[1] * slope, k[2] * slope};
  }
  Values values(const Point& at) const {
    Values out;
    for (std::size_t q = 0; q < kFields; ++q) out[q] = value(q, at);
    return out;
  }
  double laplacian(std::size_t q, const Point& at) const { return -3 * value(q, at); }
  // Returns the gradient of the divergence of the vector that begins at field q.
  Vec3<double> grad_div(std::size_t q, const Point& at) const {
    Point out{};
    for (std::size_t component = 0; component < 3; ++component) {
      const auto& k = kWaves[(q + component) % 4];
      for (std::size_t axis = 0; axis < 3; ++axis)
        out[axis] -= k[axis] * k[component] * value(q + component, at);
    }
    return {out[0], out[1], out[2]};
  }
  Local<double> local(const Point& at) const {
    const auto ax = gradient(kAx, at), ay = gradient(kAy, at), az = gradient(kAz, at);
    return {.lnrho = value(kLnRho, at),
            .s = value(kS, at),
            .u = {value(kUx, at), value(kUy, at), value(kUz, at)},
            .grad_lnrho = gradient(kLnRho, at),
            .grad_s = gradient(kS, at),
            .grad_ux = gradient(kUx, at),
            .grad_uy = gradient(kUy, at),
            .grad_uz = gradient(kUz, at),
            .lap_lnrho = laplacian(kLnRho, at),
            .lap_s = laplacian(kS, at),
            .lap_u = {laplacian(kUx, at), laplacian(kUy, at), laplacian(kUz, at)},
            .lap_a = {laplacian(kAx, at), laplacian(kAy, at), laplacian(kAz, at)},
            .grad_div_u = grad_div(kUx, at),
            .grad_div_a = grad_div(kAx, at),
            .curl_a = {az.y - ay.z, ax.z - az.x, ay.x - ax.y}};
  }
};

// Returns the largest deviation of each rate from that of exact derivatives.
Values error_of_rates(const Config& config, const Parameters& parameters) {
  const Waves waves;
  PeriodicBox<double> box(config, parameters);
  box.set([&](double x, double y, double z) { return waves.values({x, y, z}); });
  box.exchange();
  box.set_rates(parameters);
  const auto numbers = constants<double>(parameters);
  Values mine{}, all{};
  box.for_each_stored([&](const comm::Int3& p) {
    const auto exact = rates(waves.local(box.place(p)), numbers);
    const Values expected{exact.lnrho, exact.u.x, exact.u.y, exact.u.z,
                          exact.a.x,   exact.a.y, exact.a.z, exact.s};
    const auto found = box.values(box.other(), p);
    for (std::size_t q = 0; q < kFields; ++q)
      mine[q] = worse(mine[q], std::abs(found[q] - expected[q]));
  });
  HALOCLINE_MPI(
      MPI_Allreduce(mine.data(), all.data(), kFields, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
  return all;
}

Parameters all_terms() {
  auto parameters = ideal();
  parameters.mu0 = 1.4;
  parameters.nu = parameters.eta = .05;
  parameters.zeta = .02;
  parameters.conduction = .03;
  parameters.astaroth_bulk_viscosity = true;  // the form of the table
  return parameters;
}

// T6: all terms at once, with differences and with exact derivatives.
TEST(Mhd, HasRatesOfSixthOrder) {
  struct Case {
    std::int64_t points;
    double lnrho, ux, ax, s;
  };
  for (const auto& c : {Case{8, kUnknown, kUnknown, kUnknown, kUnknown},
                        Case{16, 1.538e-5, 7.771e-5, 4.594e-6, 1.966e-5},
                        Case{32, 2.536e-7, 1.297e-6, 7.379e-8, 3.302e-7},
                        Case{64, 3.985e-9, 2.070e-8, 1.170e-9, 5.303e-9}}) {
    if (c.points > kMostPoints) continue;
    const auto worst = error_of_rates(config_of(c.points), all_terms());
    expect(worst[kLnRho], c.lnrho, 1e-3, "lnrho", c.points);
    expect(worst[kUx], c.ux, 1e-3, "ux", c.points);
    expect(worst[kAx], c.ax, 1e-3, "ax", c.points);
    expect(worst[kS], c.s, 1e-3, "s", c.points);
  }
}

// Unequal spacings: the errors lie between those of 16 and of 32 points along each axis.
TEST(Mhd, TakesUnequalSpacings) {
  auto config = config_of(16);
  config.global = {16, 20, 24};
  for (const double error : error_of_rates(config, all_terms())) EXPECT_LT(error, 1.5e-4);
}

// Upwinding damps a plane wave by its exact symbol, and changes nothing else.
TEST(Mhd, SmoothsDensityUpwind) {
  constexpr std::int64_t kPoints = 16;
  const Point u{1, -.5, .25}, k{2, 3, -4};
  auto parameters = ideal();
  parameters.cs0 = 0;
  PeriodicBox<double> box(config_of(kPoints), parameters);
  const auto phase = [&](double x, double y, double z) { return k[0] * x + k[1] * y + k[2] * z; };
  box.set([&](double x, double y, double z) {
    return Values{.1 * std::sin(phase(x, y, z)), u[0], u[1], u[2]};
  });
  box.exchange();
  const auto rates_with = [&](bool upwind) {
    parameters.upwind = upwind;
    box.set_rates(parameters);
    std::vector<Values> out;
    box.for_each_stored([&](const comm::Int3& p) { out.push_back(box.values(box.other(), p)); });
    return out;
  };
  const auto plain = rates_with(false), upwind = rates_with(true);
  double symbol = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double t = k[axis] * box.h();
    const double sum = -20 + 30 * std::cos(t) - 12 * std::cos(2 * t) + 2 * std::cos(3 * t);
    symbol += std::abs(u[axis]) * sum / (60 * box.h());
  }
  EXPECT_LT(symbol, -.1);
  double worst = 0;
  std::size_t i = 0;
  box.for_each_stored([&](const comm::Int3& p) {
    const auto at = box.place(p);
    auto expected = plain[i];
    expected[kLnRho] += symbol * .1 * std::sin(phase(at[0], at[1], at[2]));
    for (std::size_t q = 0; q < kFields; ++q)
      worst = worse(worst, std::abs(upwind[i][q] - expected[q]));
    ++i;
  });
  EXPECT_LT(worst, 1e-14);
}

Values turbulence(double x, double y, double z) {
  return {.2 * std::sin(x + y) + .1 * std::cos(y - z),
          .2 * std::sin(y + z + .3) + .2 * std::cos(x),
          .2 * std::cos(z + x + .7) + .2 * std::sin(y + .2),
          .2 * std::sin(x + y + 1.1) + .2 * std::sin(z + .5),
          .2 * std::sin(y + z + .2),
          .2 * std::cos(x + z),
          .2 * std::sin(x - y + .4),
          .1 * std::sin(x + z)};
}

// Returns the mass and the energy of the box.
std::array<double, 2> mass_and_energy(PeriodicBox<double>& box, const Parameters& p) {
  box.exchange();
  const auto numbers = measure(box.domain(), p, box.spacing(), box.fields(), MPI_COMM_WORLD);
  const auto number = [&](std::string_view name) {
    const auto found = std::find(kMeasures.begin(), kMeasures.end(), name);
    return numbers[static_cast<std::size_t>(found - kMeasures.begin())];
  };
  return {number("mass"), number("e_kinetic") + number("e_thermal") + number("e_magnetic")};
}

// T7: mass and energy. Energy is conserved only if pressure, heating, conduction and the Lorentz
// force are all right.
TEST(Mhd, ConservesMassAndEnergy) {
  struct Case {
    std::int64_t points;
    double mass, ideal, diffusive, astaroth, corrected;
  };
  for (const auto& c : {Case{8, 3.0e-6, -4.43e-5, -4.37e-5, -5.23e-5, -4.43e-5},
                        Case{16, 6.9e-8, -2.00e-6, -1.95e-6, -9.96e-6, -1.94e-6},
                        Case{32, 1.0e-9, -4.20e-8, -4.09e-8, -8.06e-6, -4.06e-8},
                        Case{64, -1.6e-10, -1.77e-9, -1.74e-9, -8.03e-6, -1.73e-9}}) {
    if (c.points > kMostPoints) continue;
    const auto drift = [&](const Parameters& parameters) {
      PeriodicBox<double> box(config_of(c.points), parameters);
      box.set(turbulence);
      const auto before = mass_and_energy(box, parameters);
      box.advance(50, .005);
      const auto after = mass_and_energy(box, parameters);
      return std::array{after[0] / before[0] - 1, after[1] / before[1] - 1};
    };
    auto parameters = ideal();
    const auto check = [&](const std::string& name, double mass, double energy) {
      const auto drifts = drift(parameters);
      expect(drifts[0], mass, 0.03, "mass, " + name, c.points);
      expect(drifts[1], energy, 0.004, "energy, " + name, c.points);
    };
    check("ideal", c.mass, c.ideal);
    parameters.nu = parameters.eta = parameters.conduction = .02;
    check("diffusive", kUnknown, c.diffusive);
    parameters.zeta = .02;
    check("corrected", kUnknown, c.corrected);
    parameters.astaroth_bulk_viscosity = true;
    check("astaroth", kUnknown, c.astaroth);
  }
}

// The same with other parameters: a lost cp, lnrho0, t0 or B0 would not converge.
TEST(Mhd, ConservesEnergyOfOtherGases) {
  Parameters parameters;
  parameters.gamma = 1.4;
  parameters.cp = 2;
  parameters.t0 = 0.8;
  parameters.cs0 = std::sqrt((parameters.gamma - 1) * parameters.cp * parameters.t0);
  parameters.lnrho0 = 0.3;
  parameters.nu = parameters.eta = parameters.conduction = parameters.zeta = .02;
  parameters.b0 = {.3, -.2, .1};
  EXPECT_TRUE(is_ideal_gas(parameters));
  const auto drift = [&](std::int64_t points) {
    PeriodicBox<double> box(config_of(points), parameters);
    box.set(turbulence);
    const auto before = mass_and_energy(box, parameters)[1];
    box.advance(50, .005);
    return std::abs(mass_and_energy(box, parameters)[1] / before - 1);
  };
  EXPECT_LT(drift(16), drift(8) / 16);
  parameters.cs0 = 1.1;
  EXPECT_FALSE(is_ideal_gas(parameters));
}

// T8: the order of the time steps.
TEST(Mhd, IsOfThirdOrderInTime) {
  auto parameters = ideal();
  parameters.nu = parameters.eta = parameters.conduction = .01;
  const auto state_after = [&](int steps) {
    PeriodicBox<double> box(config_of(16), parameters);
    box.set([](double x, double y, double z) {
      const auto all = turbulence(x, y, z);
      return Values{.2 * std::sin(x + y),
                    .2 * std::sin(y + z + .3),
                    .2 * std::cos(z + x + .7),
                    .2 * std::sin(x + y + 1.1),
                    all[kAx],
                    all[kAy],
                    all[kAz],
                    all[kS]};
    });
    box.advance(steps, 1.0 / steps);
    std::vector<double> out;
    box.for_each_stored([&](const comm::Int3& p) {
      for (int field = 0; field < kFields; ++field)
        out.push_back(*box.address(box.fields(), field, p));
    });
    return out;
  };
  constexpr double kDifferences[] = {2.97e-3, 3.93e-4, 4.91e-5, 6.21e-6};
  auto coarse = state_after(5);
  int steps = 5;
  for (const double expected : kDifferences) {
    auto fine = state_after(steps *= 2);
    double mine = 0, all = 0;
    for (std::size_t i = 0; i < fine.size(); ++i) mine = worse(mine, std::abs(fine[i] - coarse[i]));
    HALOCLINE_MPI(MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
    expect(all, expected, 0.01, "difference", steps / 2);
    coarse = std::move(fine);
  }
}

// T9: the field has no sources, and the density changes by the flow alone, to rounding.
TEST(Mhd, KeepsDiscreteInvariants) {
  for (const std::int64_t points : {std::int64_t{8}, std::int64_t{16}, kMostPoints}) {
    const auto parameters = ideal();
    PeriodicBox<double> box(config_of(points), parameters);
    box.set(turbulence);
    box.exchange();
    box.set_rates(parameters);
    double mine[2]{}, all[2];
    box.for_each_stored([&](const comm::Int3& p) {
      const auto f = box.local_at(p);
      mine[0] += *box.address(box.other(), kLnRho, p);
      mine[1] += (f.lnrho - 1) * (f.grad_ux.x + f.grad_uy.y + f.grad_uz.z);
    });
    HALOCLINE_MPI(MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    EXPECT_NEAR(all[0], all[1], 1e-12 * std::pow(static_cast<double>(points), 3));

    // The field takes the place of the velocity, so that a second exchange fills its ghosts.
    std::vector<Vec3<double>> b;
    box.for_each_stored([&](const comm::Int3& p) { b.push_back(box.local_at(p).curl_a); });
    auto next = b.begin();
    box.for_each_stored([&](const comm::Int3& p) {
      *box.address(box.fields(), kUx, p) = next->x;
      *box.address(box.fields(), kUy, p) = next->y;
      *box.address(box.fields(), kUz, p) = (next++)->z;
    });
    box.exchange();
    double divergence = 0;
    box.for_each_stored([&](const comm::Int3& p) {
      const auto f = box.local_at(p);
      divergence = worse(divergence, std::abs(f.grad_ux.x + f.grad_uy.y + f.grad_uz.z));
    });
    EXPECT_LE(divergence, 1e-16 * static_cast<double>(points));
  }
}

// T11: the bits do not depend on ranks, layout or parts.
template <class T>
class Bits : public testing::Test {};
TYPED_TEST_SUITE(Bits, Elements);

TYPED_TEST(Bits, AreTheSameEverywhere) {
  auto parameters = ideal();
  parameters.nu = parameters.eta = parameters.conduction = .01;
  parameters.zeta = .02;
  auto config = config_of(16);
  config.element = sizeof(TypeParam) == sizeof(double) ? Element::float64 : Element::float32;
  const auto hash = [&](const Config& of, MPI_Comm comm, std::vector<comm::Box> boxes) {
    PeriodicBox<TypeParam> box(of, parameters, comm);
    box.set(turbulence);
    if (!boxes.empty()) box.divide(std::move(boxes));
    box.advance(3, .005);
    return box.hash();
  };
  // No multiples of a number of ranks, or of a vector. The second box has several tiles.
  for (const comm::Int3& points : {comm::Int3{13, 11, 17}, comm::Int3{7, 37, 35}}) {
    config.global = points;
    config.layout = Layout::soa;
    const auto expected = hash(config, MPI_COMM_SELF, {});
    EXPECT_EQ(hash(config, MPI_COMM_WORLD, {}), expected);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      comm::Box low{{3, 3, 3}, points}, high = low;
      low.extent[axis] = 5;
      high.begin[axis] += 5;
      high.extent[axis] -= 5;
      EXPECT_EQ(hash(config, MPI_COMM_SELF, {high, low}), expected);
    }
    config.layout = Layout::aos;
    EXPECT_EQ(hash(config, MPI_COMM_WORLD, {}), expected);
  }
}

TEST(Mhd, ComputesInFloatWhatItComputesInDouble) {
  auto parameters = ideal();
  parameters.nu = parameters.eta = parameters.conduction = parameters.zeta = .02;
  auto config = config_of(16);
  PeriodicBox<double> exact(config, parameters);
  config.element = Element::float32;
  PeriodicBox<float> box(config, parameters);
  exact.set(turbulence);
  box.set(turbulence);
  exact.advance(20, .01);
  box.advance(20, .01);
  double mine = 0, all = 0;
  box.for_each_stored([&](const comm::Int3& p) {
    for (int field = 0; field < kFields; ++field)
      mine = worse(mine, std::abs(static_cast<double>(*box.address(box.fields(), field, p)) -
                                  *exact.address(exact.fields(), field, p)));
  });
  HALOCLINE_MPI(MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
  EXPECT_LT(all, 1e-6);
  EXPECT_GT(all, 0);
}

// The same numbers come out of all equations if those that are left out have no effect.
TEST(Mhd, LeavesEquationsOut) {
  auto parameters = ideal();
  parameters.nu = parameters.eta = parameters.conduction = parameters.zeta = .02;
  const auto compare = [](const Parameters& all, const Parameters& some, const Function& initial) {
    PeriodicBox<double> whole(config_of(12), all), part(config_of(12), some);
    whole.set(initial);
    part.set(initial);
    whole.advance(3, .02);
    part.advance(3, .02);
    double off = 0;
    for (const auto field : fields_of(some.terms))
      part.for_each_stored([&](const comm::Int3& p) {
        off = worse(off, std::abs(*part.address(part.fields(), field, p) -
                                  *whole.address(whole.fields(), field, p)));
      });
    EXPECT_EQ(off, 0);
    EXPECT_EQ(part.domain().fields, static_cast<int>(fields_of(some.terms).size()));
  };
  const auto without_field = [](double x, double y, double z) {
    auto values = turbulence(x, y, z);
    values[kAx] = values[kAy] = values[kAz] = 0;
    return values;
  };
  auto some = parameters;
  some.terms = {.entropy = true, .magnetic = false};
  compare(parameters, some, without_field);
  // No pressure depends on entropy or compression.
  parameters.gamma = 1;
  parameters.cp = 1e300;
  some = parameters;
  some.terms = {.entropy = false, .magnetic = true};
  compare(parameters, some, turbulence);
  some.terms = {.entropy = false, .magnetic = false};
  compare(parameters, some, without_field);
}

// T10: the stencil reads the ghosts of the directions that it names, and no others.
TEST(Mhd, ReadsTheGhostsThatItNames) {
  auto parameters = ideal();
  parameters.nu = parameters.eta = parameters.conduction = parameters.zeta = .01;
  PeriodicBox<double> box(config_of(6), parameters, MPI_COMM_SELF);
  box.set(turbulence);
  box.exchange();
  const auto poison = [&](int field, comm::Direction direction) {
    const auto [begin, extent] = box.domain().halo.ghost_box(direction);
    for (auto z = begin[2]; z < begin[2] + extent[2]; ++z)
      for (auto y = begin[1]; y < begin[1] + extent[1]; ++y)
        for (auto x = begin[0]; x < begin[0] + extent[0]; ++x)
          *box.address(box.fields(), field, {x, y, z}) = std::nan("");
  };
  // Returns the sum of all rates, which is NaN if one of them is.
  const auto sum_of_rates = [&] {
    box.set_rates(parameters);
    double out = 0;
    box.for_each_stored([&](const comm::Int3& p) {
      for (int field = 0; field < kFields; ++field) out += *box.address(box.other(), field, p);
    });
    return out;
  };
  const auto expected = sum_of_rates();
  int blocks = 0;
  for (int field = 0; field < kFields; ++field) {
    const auto needed = needed_neighbors(static_cast<Field>(field));
    blocks += needed.size();
    comm::for_each_direction([&](comm::Direction direction) {
      if (!needed.contains(direction)) return poison(field, direction);
      poison(field, direction);
      EXPECT_TRUE(std::isnan(sum_of_rates())) << "field " << field;
      box.exchange();
    });
    comm::for_each_direction([&](comm::Direction direction) {
      if (!needed.contains(direction)) poison(field, direction);
    });
    EXPECT_EQ(sum_of_rates(), expected) << "field " << field;
    box.exchange();
  }
  EXPECT_EQ(blocks, 96);
}

// Below the limit a checkerboard decays, above it grows.
TEST(Mhd, KnowsTheLimitOfDiffusion) {
  for (const auto& [nu, zeta, eta] :
       {Point{1, 0, 0}, Point{1, 1, 0}, Point{1, 2, 0}, Point{0, 0, 1}})
    for (const double part : {.99, 1.01}) {
      auto parameters = ideal();
      parameters.cs0 = 0;
      parameters.nu = nu;
      parameters.zeta = zeta;
      parameters.eta = eta;
      PeriodicBox<double> box(config_of(8), parameters);
      box.set([&](double x, double y, double z) {
        const double sign = std::cos((x + y + z) / box.h() * kTurn / 2);
        return Values{0, 1e-9 * sign, 0, 0, 1e-9 * sign, 0, 0, 0};
      });
      box.exchange();
      const auto limit =
          step_limits(box.domain(), parameters, box.spacing(), box.fields(), MPI_COMM_WORLD).stable;
      box.advance(100, part * limit);
      const double left = box.deviation(nu > 0 ? kUx : kAx, [](auto...) { return 0; });
      EXPECT_EQ(left < .5e-9, part < 1) << left;
      EXPECT_EQ(left > 2e-9, part > 1) << left;
    }
}

TEST(Mhd, MeasuresTheSameOnAllRanks) {
  const auto numbers = [](MPI_Comm comm) {
    const Parameters parameters;
    PeriodicBox<double> box(config_of(13), parameters, comm);
    box.set(turbulence);
    box.exchange();
    return measure(box.domain(), parameters, box.spacing(), box.fields(), comm);
  };
  const auto all = numbers(MPI_COMM_WORLD), one = numbers(MPI_COMM_SELF);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (kMeasures[i].ends_with("_min") || kMeasures[i].ends_with("_max"))
      EXPECT_EQ(all[i], one[i]) << kMeasures[i];
    else
      EXPECT_NEAR(all[i], one[i], 1e-11) << kMeasures[i];
  EXPECT_LT(one.back(), 2e-15);  // the divergence of B
  EXPECT_LT(one[0], one[1]);
  EXPECT_LT(one[1], one[2]);
  EXPECT_NEAR(one[7], one[4] / std::sqrt(Parameters{}.mu0), .1);
}

TEST(Mhd, ChoosesStableSteps) {
  auto parameters = ideal();
  PeriodicBox<double> box(config_of(16), parameters);
  const auto step = [&] {
    box.exchange();
    return step_limits(box.domain(), parameters, box.spacing(), box.fields(), MPI_COMM_WORLD)
        .chosen;
  };
  box.set([](double, double, double) { return Values{0, 2, 0, 0, 0, 0, 0, 0}; });
  EXPECT_NEAR(step(), 0.4 * box.h() / 3, 1e-14);
  parameters.b0 = {0, 0, std::sqrt(3.0)};
  EXPECT_NEAR(step(), 0.4 * box.h() / 4, 1e-14);
  parameters.nu = .5;
  parameters.zeta = 1;
  EXPECT_NEAR(step(), 0.1 * box.h() * box.h() / .8, 1e-14);
  parameters.eta = 1;
  EXPECT_NEAR(step(), 0.1 * box.h() * box.h(), 1e-14);
  parameters.conduction = 3;
  parameters.cp = 2;
  box.set([](double, double, double) { return Values{-1, 0, 0, 0, 0, 0, 0, 0}; });
  EXPECT_NEAR(step(), 0.1 * box.h() * box.h() / (5.0 / 3 * 3 * std::exp(1.0) / 2), 1e-14);

  parameters = ideal();
  parameters.mu0 = 1.4;
  parameters.cp = 2;
  parameters.lnrho0 = .2;
  box.set(turbulence);
  box.exchange();
  double mine = 0, fastest = 0;
  box.for_each_stored([&](const comm::Int3& p) {
    const auto f = box.local_at(p);
    const double cs_squared = std::exp(parameters.gamma / parameters.cp * f.s +
                                       (parameters.gamma - 1) * (f.lnrho - parameters.lnrho0));
    mine = worse(mine, std::sqrt(dot(f.u, f.u)) +
                           std::sqrt(cs_squared + dot(f.curl_a, f.curl_a) /
                                                      (parameters.mu0 * std::exp(f.lnrho))));
  });
  HALOCLINE_MPI(MPI_Allreduce(&mine, &fastest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
  EXPECT_NEAR(step(), 0.4 * box.h() / fastest, 1e-14);

  box.set([](double x, double y, double z) {
    return Values{x + y + z < .1 ? std::nan("") : 0, 0, 0, 0, 0, 0, 0, 0};
  });
  EXPECT_EQ(step(), 0);
  parameters.cs0 = 0;
  box.set([](double, double, double) { return Values{}; });
  EXPECT_EQ(step(), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace halocline::app::mhd
