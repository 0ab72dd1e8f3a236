// SPDX-License-Identifier: BSD-3-Clause
#include "png.hpp"

#include <png.h>

#include <csetjmp>

#include "support/error.hpp"

namespace halocline::app {

namespace {

void append_bytes(png_structp png, png_bytep bytes, std::size_t length) {
  static_cast<std::string*>(png_get_io_ptr(png))
      ->append(reinterpret_cast<const char*>(bytes), length);
}

void keep_message(png_structp png, png_const_charp text) {
  *static_cast<std::string*>(png_get_error_ptr(png)) = text;
  png_longjmp(png, 1);
}

void ignore_message(png_structp, png_const_charp) {}

/// Owns libpng's handles.
struct PngHandles {
  png_structp png;
  png_infop info;
  explicit PngHandles(std::string& message)
      : png(png_create_write_struct(PNG_LIBPNG_VER_STRING, &message, keep_message, ignore_message)),
        info(png == nullptr ? nullptr : png_create_info_struct(png)) {}
  PngHandles(const PngHandles&) = delete;
  PngHandles& operator=(const PngHandles&) = delete;
  ~PngHandles() { png_destroy_write_struct(&png, &info); }
};

// Returns false if libpng jumped back. No local object here has a destructor, since a jump would
// leave it out.
bool write_png(const PngHandles& to, const PalettePicture& picture, const png_color* palette,
               png_text* texts, png_byte* row) {
  if (setjmp(png_jmpbuf(to.png)) != 0) return false;
  const auto scale = static_cast<std::size_t>(picture.scale);
  const auto width = static_cast<std::size_t>(picture.width);
  const auto height = static_cast<std::size_t>(picture.height);
  png_set_IHDR(to.png, to.info, static_cast<png_uint_32>(scale * width),
               static_cast<png_uint_32>(scale * height), 8, PNG_COLOR_TYPE_PALETTE,
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_set_PLTE(to.png, to.info, palette, static_cast<int>(picture.palette.size()));
  png_set_text(to.png, to.info, texts, static_cast<int>(picture.texts.size()));
  png_write_info(to.png, to.info);
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < scale * width; ++x) row[x] = picture.numbers[y * width + x / scale];
    for (std::size_t i = 0; i < scale; ++i) png_write_row(to.png, row);
  }
  png_write_end(to.png, nullptr);
  return true;
}

}  // namespace

bool has_png() {
  return true;
}

std::string png_of(const PalettePicture& picture) {
  std::vector<png_color> palette;
  for (const auto& [red, green, blue] : picture.palette) palette.push_back({red, green, blue});
  auto owned = picture.texts;  // libpng takes no const
  std::vector<png_text> texts;
  for (auto& [key, value] : owned) {
    auto& text = texts.emplace_back();
    text.compression = PNG_TEXT_COMPRESSION_NONE;
    text.key = key.data();
    text.text = value.data();
    text.text_length = value.size();
  }
  std::vector<png_byte> row(static_cast<std::size_t>(picture.width * picture.scale));
  std::string bytes, message;
  const PngHandles handles(message);
  if (handles.info != nullptr) {
    png_set_write_fn(handles.png, &bytes, append_bytes, nullptr);
    if (write_png(handles, picture, palette.data(), texts.data(), row.data())) return bytes;
  }
  throw EnvironmentError("PNG cannot be written (libpng: " + message +
                         "): use fewer points, or leave slice-every out");
}

}  // namespace halocline::app
