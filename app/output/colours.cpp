// SPDX-License-Identifier: BSD-3-Clause
#include "colours.hpp"

#include <algorithm>
#include <cmath>

namespace halocline::app {

namespace {

// 17 colours of each scale at equal distances, as matplotlib has them.
constexpr Colour kViridis[] = {
    {68, 1, 84},    {72, 24, 106},  {71, 45, 123},  {66, 64, 134},  {59, 82, 139},  {51, 99, 141},
    {44, 114, 142}, {38, 129, 142}, {33, 144, 140}, {31, 159, 136}, {40, 174, 128}, {62, 188, 116},
    {93, 201, 99},  {130, 211, 76}, {171, 220, 50}, {213, 226, 26}, {253, 231, 37}};
constexpr Colour kCoolwarm[] = {{59, 76, 192},   {77, 104, 215},  {98, 130, 234},  {119, 154, 247},
                                {141, 176, 254}, {163, 194, 254}, {184, 208, 249}, {204, 217, 238},
                                {221, 221, 221}, {236, 211, 197}, {244, 196, 173}, {247, 177, 148},
                                {244, 154, 123}, {236, 127, 99},  {222, 96, 77},   {203, 62, 56},
                                {180, 4, 38}};

std::vector<Colour> palette_of(std::span<const Colour> colours) {
  std::vector<Colour> out;
  const auto intervals = static_cast<double>(colours.size() - 1);
  for (int i = 0; i <= ColourScale::kLast; ++i) {
    const double place = i * intervals / ColourScale::kLast;
    const auto below = std::min(static_cast<std::size_t>(place), colours.size() - 2);
    const double part = place - static_cast<double>(below);
    auto& mixed = out.emplace_back();
    for (std::size_t c = 0; c < mixed.size(); ++c)
      mixed[c] = static_cast<std::uint8_t>(
          std::lround((1 - part) * colours[below][c] + part * colours[below + 1][c]));
  }
  out.push_back({0, 0, 0});
  return out;
}

}  // namespace

std::uint8_t ColourScale::colour(double value) const {
  if (!std::isfinite(value)) return kNotFinite;
  // Halves, since the difference of two finite numbers may be infinite.
  const double range = high / 2 - low / 2;
  const double part = range > 0 ? (value / 2 - low / 2) / range : 0.5;
  return static_cast<std::uint8_t>(std::lround(std::clamp(part, 0.0, 1.0) * kLast));
}

ColourScale colour_scale(double low, double high) {
  if (!(low < 0 && high > 0)) return {low, high, palette_of(kViridis)};
  const double most = std::max(-low, high);
  return {-most, most, palette_of(kCoolwarm)};
}

}  // namespace halocline::app
