// SPDX-License-Identifier: BSD-3-Clause
// Writes pictures of numbers as PNG, by libpng. Without libpng, no_png.cpp is built instead.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace halocline::app {

using Colour = std::array<std::uint8_t, 3>;  ///< red, green, blue

/// Describes a picture by numbers of colours.
struct PalettePicture {
  std::int64_t width, height;         ///< of `numbers`
  int scale;                          ///< each number is drawn as scale x scale pixels
  std::vector<std::uint8_t> numbers;  ///< row by row, the top row first
  std::vector<Colour> palette;
  std::vector<std::pair<std::string, std::string>> texts;  ///< keys and values
};

/// Tells if this program can write PNG.
bool has_png();

/// Returns the bytes of a PNG file. Local. Throws EnvironmentError if libpng refuses the picture,
/// such as one of more than a million pixels along a side.
std::string png_of(const PalettePicture& picture);

}  // namespace halocline::app
