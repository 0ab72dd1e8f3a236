// SPDX-License-Identifier: BSD-3-Clause
// Aligned tables and numbers for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace halocline::app {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::right;
};

/// Plain text with aligned columns and a rule below the titles.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Precondition: one cell per column. Cells are UTF-8; each code point counts as one character
  /// wide.
  void add_row(std::vector<std::string> cells);

  /// All lines, each ended by a newline and without trailing spaces.
  std::string str() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Returns the columns of the longest line of `text`.
std::size_t width_of(std::string_view text);

/// Returns the columns of the terminal, from 60 to 120: $COLUMNS if it is set, else those of
/// standard output, else 80. Under mpirun standard output is a pipe.
std::size_t columns_of_terminal();

/// Breaks the words of a text into lines of at most `columns`, each ended by a newline.
std::string wrapped(std::string_view text, std::size_t columns);

/// "%.{digits}f", without the C locale's surprises.
std::string format_fixed(double value, int digits);

/// "812 ns", "1.23 us", "45.6 ms", "7.89 s": three significant digits.
std::string format_seconds(double seconds);

/// "24 B", "1.5 KiB", "73.7 MiB": powers of 1024.
std::string format_bytes(double bytes);

/// "12.3 GB/s" (10^9 bytes per second), also MB/s and kB/s.
std::string format_rate(double bytes_per_second);

/// "1 rank", "2 ranks".
std::string format_count(std::int64_t n, std::string_view what);

/// "3.3e-15".
std::string format_scientific(double value);

/// "0x" and 16 digits.
std::string format_hash(std::uint64_t hash);

/// "256 x 256 x 256".
template <class Triple>
std::string format_extent(const Triple& extent) {
  return std::to_string(extent[0]) + " x " + std::to_string(extent[1]) + " x " +
         std::to_string(extent[2]);
}

}  // namespace halocline::app
