// SPDX-License-Identifier: BSD-3-Clause
// Replaces png.cpp if there is no libpng.
#include "png.hpp"

#include "support/error.hpp"

namespace halocline::app {

bool has_png() {
  return false;
}

std::string png_of(const PalettePicture&) {
  throw EnvironmentError("PNG cannot be written (no libpng): build again with libpng");
}

}  // namespace halocline::app
