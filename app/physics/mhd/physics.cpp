// SPDX-License-Identifier: BSD-3-Clause
// Makes magnetohydrodynamics a physics of `run`.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "field_views.hpp"
#include "physics.hpp"
#include "physics/mhd/forcing.hpp"
#include "physics/mhd/initial.hpp"
#include "physics/mhd/measure.hpp"
#include "physics/mhd/mhd.hpp"
#include "physics/mhd/parameters.hpp"
#include "physics/mhd/shock.hpp"
#include "support/error.hpp"
#include "support/mpi_check.hpp"

namespace halocline::app {

namespace {

std::array<double, 3> mhd_spacing(const Config& config) {
  std::array<double, 3> out;
  out.fill(mhd::parameter(config, "spacing"));
  return out;
}

template <class T>
class Mhd final : public Physics<T> {
 public:
  Mhd(const Config& config, const Domain& domain)
      : config_(config),
        domain_(domain),
        spacing_(mhd_spacing(config)),
        wave_(mhd::exact_solution(config, domain.decomposition.global())) {
    take(config);
    stored_ = mhd::stored_fields(parameters_);
    now_ = next_ = {0, {0, fixed_dt_}};
  }

  int parts() const override { return 1; }

  void set_initial(const FieldSet<T>& fields) const override {
    for_each_element("halocline::mhd::set_initial", domain_, fields,
                     [value = mhd::initial_state(config_, domain_.decomposition.global()),
                      stored = stored_](T& element, const ElementMap::Place& p) {
                       const auto field = stored[static_cast<std::size_t>(p.field)];
                       element = !p.owned && !p.outside ? std::numeric_limits<T>::quiet_NaN()
                                 : field == mhd::kShock
                                     ? T(0)
                                     : static_cast<T>(value(field, {p.x, p.y, p.z}));
                     });
  }

  void set_outer_ghosts(const FieldSet<T>&, std::int64_t) const override {}

  void help(int round, const FieldSet<T>& from, const FieldSet<T>& to) const override {
    mhd::find_shocks(domain_, parameters_, spacing_, static_cast<mhd::ShockRound>(round), from, to);
  }

  void start(std::int64_t substep, const FieldSet<T>& in, const FieldSet<T>& out, int,
             std::span<const comm::Box> boxes) const override {
    const double dt = clock(substep).dt;
    const auto stage = static_cast<int>(substep % mhd::Substep::kOfStep);
    mhd::start_substep(domain_, parameters_, spacing_, {stage, dt}, in, out, boxes);
    if (forcing_ && is_last_of_step(substep)) forcing_->start(parameters_, dt, out, boxes);
  }
  void finish(const FieldSet<T>& out) const override { mhd::finish_substep(out); }

  // Chooses the next step from the fields before the last substep of a step. With overlap, a step
  // has begun before its first ghosts arrive.
  void observe(std::int64_t substep, const FieldSet<T>& in, MPI_Comm comm) override {
    if (!is_last_of_step(substep)) {
      if (forcing_) forcing_->prepare(substep / mhd::Substep::kOfStep);
      return;
    }
    if (wave_ && substep >= 0) wave_->advance(parameters_, clock(substep).dt);
    const double dt = chosen_step(parameters_, fixed_dt_, in, comm, substep < 0);
    now_ = next_;
    next_ = {substep + 1, {substep < 0 ? 0 : now_.clock.time + now_.clock.dt, dt}};
  }

  Clock clock(std::int64_t substep) const override {
    return substep < next_.begin ? now_.clock : next_.clock;
  }
  std::vector<double> state() const override {
    std::vector<double> out{static_cast<double>(next_.begin), next_.clock.time, next_.clock.dt};
    if (wave_) out.insert(out.end(), wave_->state().begin(), wave_->state().end());
    return out;
  }
  void restore(std::span<const double> state) override {
    constexpr std::size_t kClock = 3,
                          kWithWave = kClock + std::tuple_size_v<mhd::CircularWave::State>;
    const bool is_known = (state.size() == kClock || state.size() == kWithWave) && state[0] >= 0 &&
                          state[0] == std::floor(state[0]) && state[2] > 0 &&
                          std::all_of(state.begin(), state.end(),
                                      [](double number) { return std::isfinite(number); });
    if (!is_known) throw ConfigError("has a state that mhd does not know");
    next_ = {static_cast<std::int64_t>(state[0]), {state[1], state[2]}};
    now_ = next_;
    mhd::CircularWave::State wave;
    if (state.size() != 3 + wave.size()) wave_.reset();  // the other run had a force
    if (!wave_) return;
    std::copy_n(state.begin() + 3, wave.size(), wave.begin());
    wave_->set_state(wave);
  }
  // The step that was chosen with the old parameters may be too long for the new ones.
  void reload(const Config& config, const FieldSet<T>& fields, MPI_Comm comm) override {
    const auto parameters = mhd::parameters_of(config);
    mhd::info(config);
    if (mhd::stored_fields(parameters) != stored_)
      throw ConfigError(
          "mhd.shock cannot become 0 or more than 0 in a run, which keeps its fields: leave it as "
          "it was, or begin a new run");
    const double fixed_dt = mhd::parameter(config, "dt");
    const double dt = chosen_step(parameters, fixed_dt, fields, comm, true);
    take(config);
    next_.clock.dt = dt;
  }

  std::vector<double> measure(const FieldSet<T>& fields, MPI_Comm comm) const override {
    return mhd::measure(domain_, parameters_, spacing_, fields, comm);
  }

  std::optional<SolutionCheck> check(const FieldSet<T>& fields, std::int64_t substeps,
                                     MPI_Comm comm) const override {
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    double worst = 0;
    for (int a = 0; a < fields.arrays(); ++a) {
      const auto view = array_of(fields, a);
      const auto off = reduce_array<T, Kokkos::Max<double>>(
          "halocline::mhd::check", view,
          [=, map = ElementMap(domain_, a), wave = wave_, parameters = parameters_,
           stored = stored_](std::int64_t z, std::int64_t y, std::int64_t e, double& largest) {
            const auto p = map(z, y, e);
            if (!p.owned) return;
            const auto value = static_cast<double>(view(z, y, e));
            const auto field = stored[static_cast<std::size_t>(p.field)];
            const double exact =
                wave && field != mhd::kShock ? wave->value(field, {p.x, p.y, p.z}, parameters) : 0;
            // Without an exact solution only infinity and NaN are wrong.
            const double error = Kokkos::abs(value - exact) * (wave ? 1 : 0);
            if (!(error <= largest)) largest = error == error ? error : kInfinite;
          });
      worst = std::max(worst, off);
    }
    HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_DOUBLE, MPI_MAX, comm));
    if (!wave_ && worst == 0) return std::nullopt;
    const double relative = sizeof(T) == sizeof(double) ? 1e-12 : 1e-5;
    const double roundings =
        4 * static_cast<double>(std::numeric_limits<T>::epsilon()) * static_cast<double>(substeps);
    return SolutionCheck{wave_ ? worst / wave_->scale() : worst, std::max(relative, roundings)};
  }

 private:
  static bool is_last_of_step(std::int64_t substep) {
    return (substep + 1) % mhd::Substep::kOfStep == 0;
  }
  // Returns the fixed step, or else the longest one. `is_checked`: refuses a fixed step that is not
  // stable.
  double chosen_step(const mhd::Parameters& parameters, double fixed_dt, const FieldSet<T>& fields,
                     MPI_Comm comm, bool is_checked) const {
    if (fixed_dt > 0 && !is_checked) return fixed_dt;
    const auto limits = mhd::step_limits(domain_, parameters, spacing_, fields, comm);
    if (fixed_dt == 0 && std::isinf(limits.chosen))
      throw ConfigError(
          "mhd.dt cannot be chosen (no wave moves, and nothing diffuses): give mhd.dt");
    if (fixed_dt == 0) return limits.chosen;
    if (fixed_dt > limits.stable && !config_.force_dt)
      throw ConfigError("mhd.dt is not stable (mhd.dt " + number(fixed_dt) +
                        ", some wave grows in steps above " + number(limits.stable) +
                        "): use a shorter one, 0 for the longest, or --force-dt");
    return fixed_dt;
  }
  static std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", value);
    return text;
  }

  // Takes all parameters that may change between two steps.
  void take(const Config& config) {
    parameters_ = mhd::parameters_of(config);
    fixed_dt_ = mhd::parameter(config, "dt");
    forcing_.reset();
    if (const auto forcing = mhd::forcing_of(config); forcing.strength > 0)
      forcing_.emplace(forcing, domain_, spacing_);
    if (forcing_ || domain_.decomposition.has_open_axis() ||
        (wave_ && !wave_->is_exact(parameters_)))
      wave_.reset();
  }

  const Config& config_;
  const Domain& domain_;
  mhd::Parameters parameters_;
  std::vector<mhd::Field> stored_;
  std::array<double, 3> spacing_;
  double fixed_dt_ = 0;
  std::optional<mhd::Forcing> forcing_;
  std::optional<mhd::CircularWave> wave_;  // follows the exact solution if there is one
  // Holds the step that begins with a substep. The next step is chosen before the last one is
  // complete.
  struct Step {
    std::int64_t begin = 0;
    Clock clock{};
  } now_, next_;
};

template <class T>
std::unique_ptr<Physics<T>> make_mhd(const Config& config, const Domain& domain) {
  return std::make_unique<Mhd<T>>(config, domain);
}

}  // namespace

extern const PhysicsKind kMhd;
const PhysicsKind kMhd{"mhd",
                       "compressible magnetohydrodynamics, as Astaroth",
                       mhd::number_of_fields,
                       mhd::info,
                       make_mhd<double>,
                       make_mhd<float>,
                       mhd::all_parameters(),
                       mhd::kept_parameters()};

}  // namespace halocline::app
