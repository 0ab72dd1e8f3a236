// SPDX-License-Identifier: BSD-3-Clause
// Gives numbers colours: equal steps of a number look equally large.
#pragma once

#include <span>
#include <vector>

#include "png.hpp"

namespace halocline::app {

/// Maps numbers to colours. Colour 0 is that of `low`, colour kLast that of `high`.
struct ColourScale {
  double low, high;  ///< equal if there is only one value
  std::vector<Colour> palette;

  static constexpr int kLast = 254;
  static constexpr int kNotFinite = 255;  ///< colour of infinity and NaN: black

  /// Returns the number of the colour of a value.
  std::uint8_t colour(double value) const;
};

/// Returns the scale of values from `low` to `high`: viridis. If they have both signs, the scale is
/// cool-warm (Moreland) and symmetric, with grey for zero.
ColourScale colour_scale(double low, double high);

}  // namespace halocline::app
