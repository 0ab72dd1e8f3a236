// SPDX-License-Identifier: BSD-3-Clause
#include "wave.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace halocline::app::mhd {

namespace {

using Complex = std::complex<double>;

// Names the numbers of a CircularWave::State.
enum Number : std::size_t { kURe, kUIm, kARe, kAIm, kAlong, kEntropy };

}  // namespace

CircularWave::CircularWave(double spacing, std::size_t axis, int turns, const comm::Int3& points)
    : axis_(axis), points_(points[axis]), turns_(turns) {
  const auto w = weights<double>({spacing, spacing, spacing});
  const double t = 2 * std::numbers::pi * turns / static_cast<double>(points_);
  second_ = -w.second[0][0];
  for (int k = 1; k <= kRadius; ++k) {
    first_ += 2 * w.first[0][k - 1] * std::sin(k * t);
    second_ -= 2 * w.second[0][k] * std::cos(k * t);
  }
}

CircularWave CircularWave::beltrami(double spacing, double amplitude, const comm::Int3& points) {
  CircularWave out(spacing, 2, -1, points);
  out.state_[kAIm] = amplitude;  // sin z + i cos z = i e^(-i z)
  if (amplitude > 0) out.scale_ = amplitude;
  return out;
}

CircularWave CircularWave::alfven(const Parameters& parameters, double spacing, double amplitude,
                                  const comm::Int3& points) {
  CircularWave out(spacing, 0, 1, points);
  out.state_[kARe] = amplitude;
  out.state_[kURe] =
      amplitude * std::sqrt(out.second_ / (parameters.mu0 * std::exp(parameters.lnrho0)));
  if (amplitude > 0) out.scale_ = std::max(out.state_[kARe], out.state_[kURe]);
  return out;
}

CircularWave::State CircularWave::rates(const State& at, const Parameters& p) const {
  constexpr Complex kI{0, 1};
  const Complex u{at[kURe], at[kUIm]}, a{at[kARe], at[kAIm]};
  const double b0 = p.b0[axis_], rho = std::exp(p.lnrho0);
  const double temperature = p.t0 * std::exp(p.gamma / p.cp * at[kEntropy]);
  const Complex du = -kI * second_ * b0 / (p.mu0 * rho) * a - p.nu * second_ * u;
  const Complex da = -kI * b0 * u - p.eta * second_ * a;
  const double joule = p.eta * second_ * second_ * std::norm(a) / (p.mu0 * rho);
  const double friction = p.nu * first_ * first_ * std::norm(u);
  return {du.real(),
          du.imag(),
          da.real(),
          da.imag(),
          -first_ * std::imag(std::conj(u) * a),
          (joule + friction) / temperature};
}

void CircularWave::advance(const Parameters& parameters, double dt) {
  State change{};
  for (std::size_t stage = 0; stage < Substep::kOfStep; ++stage) {
    const auto rate = rates(state_, parameters);
    for (std::size_t i = 0; i < state_.size(); ++i) {
      change[i] = Substep::kAlpha[stage] * change[i] + dt * rate[i];
      state_[i] += Substep::kBeta[stage] * change[i];
    }
  }
}

double CircularWave::value(Field field, const comm::Int3& point, const Parameters& p) const {
  if (field == kLnRho) return p.lnrho0;
  if (field == kS) return state_[kEntropy];
  const bool is_velocity = field < kAx;
  const auto component = (static_cast<std::size_t>(field - kUx) % 3 + 3 - axis_) % 3;
  if (component == 0) return is_velocity ? 0 : state_[kAlong];
  const auto at = is_velocity ? kURe : kARe;
  const auto z = Complex{state_[at], state_[at + 1]} *
                 std::polar(1.0, 2 * std::numbers::pi * turns_ * static_cast<double>(point[axis_]) /
                                     static_cast<double>(points_));
  return component == 1 ? z.real() : z.imag();
}

bool CircularWave::is_exact(const Parameters& p) const {
  return turns_ == 0 || (p.b0[(axis_ + 1) % 3] == 0 && p.b0[(axis_ + 2) % 3] == 0);
}

}  // namespace halocline::app::mhd
