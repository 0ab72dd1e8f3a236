// SPDX-License-Identifier: BSD-3-Clause
#include "stencil.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace halocline::app {

namespace {

constexpr std::array kSixthOrder{-49.0 / 18, 3.0 / 2, -3.0 / 20, 1.0 / 90};
constexpr std::array kSecondOrder{-2.0, 1.0};
constexpr LineWeights kAll{1.0 / 2, 1.0 / 12, 1.0 / 24};

// Returns a wave that the sides of an axis mirror as their kinds say: at a symmetric side it is
// largest, at an antisymmetric one 0.
AxisWave axis_wave(std::int64_t number, std::size_t axis, const Domain& domain) {
  const auto points = domain.decomposition.global()[axis];
  const auto low = domain.boundary[2 * axis], high = domain.boundary[2 * axis + 1];
  const auto is_mirror = [](Boundary kind) {
    return kind == Boundary::symmetric || kind == Boundary::antisymmetric;
  };
  AxisWave out{number, points};
  if (domain.decomposition.periodic()[axis] || !(is_mirror(low) || is_mirror(high))) return out;
  out.centre = is_mirror(low) ? 0 : points - 1;
  const auto kind = is_mirror(low) ? low : high;
  out.form = kind == Boundary::symmetric ? AxisWave::Form::even : AxisWave::Form::odd;
  if (!is_mirror(low) || !is_mirror(high)) return out;
  // Halves of a wave fit between sides that are alike, an odd number of quarters between others.
  out.period = (low == high ? 2 : 4) * (points - 1);
  if (low != high) out.number = 2 * number - 1;
  return out;
}

}  // namespace

StencilSpec stencil_spec(Stencil stencil) {
  switch (stencil) {
    case Stencil::heat13:
      return {kAll, kSixthOrder, 13};
    case Stencil::heat9:
      return {{1.0 / 2, 1.0 / 8, 0}, kSixthOrder, 9};
    case Stencil::heat3:
      return {{1, 0, 0}, kSixthOrder, 3};
    case Stencil::point26:
      break;
  }
  return {kAll, kSecondOrder, 13};
}

double line_weight(const StencilSpec& spec, int line) {
  if (line < 3) return spec.weights.axis;
  return line < 9 ? spec.weights.face : spec.weights.body;
}

comm::DirectionSet needed_neighbors(const StencilSpec& spec) {
  comm::DirectionSet out;
  const auto is_part = [](comm::Direction direction, const comm::Int3& line, std::int64_t side) {
    bool part = true;
    for (std::size_t axis = 0; axis < 3; ++axis)
      part = part && (direction[axis] == 0 || direction[axis] == side * line[axis]);
    return part;
  };
  for (int line = 0; line < spec.lines; ++line) {
    if (line_weight(spec, line) == 0) continue;
    comm::for_each_direction([&](comm::Direction direction) {
      for (const int side : {-1, 1})
        if (is_part(direction, kLines[static_cast<std::size_t>(line)], side)) out.insert(direction);
    });
  }
  return out;
}

Wave field_wave(int field, const Domain& domain) {
  Wave out{{}, 1.0 / 12};  // no part of a complex value is 0, and they differ
  for (std::size_t axis = 0; axis < 3; ++axis) {
    auto& wave = out.along[axis];
    wave = axis_wave(1 + (field >> axis) % 2, axis, domain);
    if (wave.form == AxisWave::Form::travelling)
      out.phase = static_cast<double>(field) / domain.fields;
  }
  return out;
}

bool has_exact_wave(const Domain& domain) {
  for (std::size_t side = 0; side < domain.boundary.size(); ++side)
    if (!domain.decomposition.periodic()[side / 2] && domain.boundary[side] == Boundary::fixed)
      return false;
  return true;
}

double choose_diffusion_number(const StencilSpec& spec, const Domain& domain, std::int64_t substeps,
                               int stages) {
  double fastest = 0;  // largest -eigenvalue among the fields' waves
  for (int field = 0; field < std::min(domain.fields, 8); ++field)
    fastest = std::max(fastest, 1 - damping(spec, field_wave(field, domain), 1));
  // (1 - 0.6 / n)^n is 0.4 for one substep and 0.55 for many.
  return std::min(0.1 / stages,
                  0.6 / (fastest * static_cast<double>(std::max<std::int64_t>(substeps, 1))));
}

double damping(const StencilSpec& spec, const Wave& wave, double diffusion_number) {
  double eigenvalue = 0;
  for (int line = 0; line < spec.lines; ++line) {
    double angle = 0;
    for (std::size_t axis = 0; axis < 3; ++axis)
      angle += 2 * std::numbers::pi *
               static_cast<double>(kLines[static_cast<std::size_t>(line)][axis] *
                                   wave.along[axis].number) /
               static_cast<double>(wave.along[axis].period);
    double difference = spec.coefficients[0];
    for (std::size_t k = 1; k < spec.coefficients.size(); ++k)
      difference += 2 * spec.coefficients[k] * std::cos(static_cast<double>(k) * angle);
    eigenvalue += line_weight(spec, line) * difference;
  }
  return 1 + diffusion_number * eigenvalue;
}

}  // namespace halocline::app
