// SPDX-License-Identifier: BSD-3-Clause
// Formats aligned tables and numbers for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/halo/direction.hpp"

namespace halocline::app {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::right;
};

/// Is plain text with aligned columns and a rule below the titles.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Adds a row. Precondition: one cell per column. Cells are UTF-8; each code point counts as one
  /// character wide.
  void add_row(std::vector<std::string> cells);

  /// Returns all lines, each ended by a newline and without trailing spaces.
  std::string str() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Returns the number of columns of the longest line of `text`.
std::size_t width_of(std::string_view text);

/// Returns the number of columns of the terminal, from 60 to 120: $COLUMNS if it is set, else that
/// of standard output. The default is 80, since under mpirun standard output is a pipe.
std::size_t columns_of_terminal();

/// Breaks the words of a text into lines of at most `columns`, each ended by a newline.
std::string wrapped(std::string_view text, std::size_t columns);

/// Formats a number as "%.{digits}f" does, whatever the C locale is.
std::string format_fixed(double value, int digits);

/// Formats a time with three significant digits: "812 ns", "1.23 us", "45.6 ms", "7.89 s".
std::string format_seconds(double seconds);

/// Formats bytes by powers of 1024: "24 B", "1.5 KiB", "73.7 MiB".
std::string format_bytes(double bytes);

/// Formats a rate: "12.3 GB/s" (10^9 bytes per second), also MB/s and kB/s.
std::string format_rate(double bytes_per_second);

/// Formats a count: "1 rank", "2 ranks".
std::string format_count(std::int64_t n, std::string_view what);

/// Formats a number like "3.3e-15".
std::string format_scientific(double value);

/// Formats a hash as "0x" and 16 digits.
std::string format_hash(std::uint64_t hash);

/// Formats three extents: "256 x 256 x 256".
template <class Triple>
std::string format_extent(const Triple& extent) {
  return std::to_string(extent[0]) + " x " + std::to_string(extent[1]) + " x " +
         std::to_string(extent[2]);
}

/// Formats ghost points by axis: "3 x 2 x 3", or "3" if all axes are alike.
inline std::string format_radius(const comm::PerAxis<std::int64_t>& radius) {
  return radius.all_alike() ? std::to_string(radius[0]) : format_extent(radius);
}

}  // namespace halocline::app
