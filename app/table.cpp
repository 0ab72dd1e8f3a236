// SPDX-License-Identifier: BSD-3-Clause
#include "table.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "support/contract.hpp"

namespace halocline::app {

namespace {

// Counts code points: every byte that is not a UTF-8 continuation byte begins one.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

struct Unit {
  double factor;
  const char* name;
};

// Formats a number with three significant digits in the largest unit in which it is at least 1.
// `units` are in descending order.
template <std::size_t N>
std::string in_units(double value, const std::array<Unit, N>& units) {
  if (value == 0 || !std::isfinite(value)) return format_fixed(value, 0) + " " + units.back().name;
  // A value of 999.6 is "1.00" of the next unit, not "1000".
  const auto unit = std::find_if(units.begin(), units.end() - 1, [&](const Unit& u) {
    return std::abs(value) / u.factor >= 0.9995;
  });
  const double scaled = value / unit->factor;
  const int digits = std::abs(scaled) >= 99.95 ? 0 : std::abs(scaled) >= 9.995 ? 1 : 2;
  return format_fixed(scaled, digits) + " " + unit->name;
}

}  // namespace

void Table::add_row(std::vector<std::string> cells) {
  HALOCLINE_EXPECT(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::str() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(width(columns_[c].title));
    for (const auto& row : rows_) widths[c] = std::max(widths[c], width(row[c]));
  }
  std::string out;
  const auto line = [&](const auto& cell) {
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::string& text = cell(c);
      const std::string padding(widths[c] - width(text), ' ');
      out += c == 0 ? "" : "  ";
      out += columns_[c].align == Align::right ? padding + text : text + padding;
    }
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  };
  line([&](std::size_t c) { return columns_[c].title; });
  line([&](std::size_t c) { return std::string(widths[c], '-'); });
  for (const auto& row : rows_) line([&](std::size_t c) { return row[c]; });
  return out;
}

std::size_t width_of(std::string_view text) {
  std::size_t out = 0;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    out = std::max(out, width(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::size_t columns_of_terminal() {
  constexpr std::size_t kUsual = 80, kLeast = 60, kMost = 120;
  winsize size{};
  auto out = kUsual;
  if (const char* const text = std::getenv("COLUMNS"); text != nullptr && std::atoi(text) > 0)
    out = static_cast<std::size_t>(std::atoi(text));
  else if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    out = size.ws_col;
  return std::clamp(out, kLeast, kMost);
}

std::string wrapped(std::string_view text, std::size_t columns) {
  std::string out, line;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    if (!line.empty() && width(line) + 1 + width(word) > columns) {
      out += line + '\n';
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return out + line + '\n';
}

std::string format_fixed(double value, int digits) {
  std::array<char, 512> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                          std::chars_format::fixed, digits);
  return error == std::errc{} ? std::string(buffer.data(), end) : "?";
}

std::string format_seconds(double seconds) {
  return in_units(seconds,
                  std::array{Unit{1, "s"}, Unit{1e-3, "ms"}, Unit{1e-6, "us"}, Unit{1e-9, "ns"}});
}

std::string format_bytes(double bytes) {
  constexpr double kibi = 1024;
  if (std::abs(bytes) < kibi) return format_fixed(bytes, 0) + " B";
  return in_units(
      bytes, std::array{Unit{kibi * kibi * kibi * kibi, "TiB"}, Unit{kibi * kibi * kibi, "GiB"},
                        Unit{kibi * kibi, "MiB"}, Unit{kibi, "KiB"}});
}

std::string format_rate(double bytes_per_second) {
  return in_units(bytes_per_second, std::array{Unit{1e9, "GB/s"}, Unit{1e6, "MB/s"},
                                               Unit{1e3, "kB/s"}, Unit{1, "B/s"}});
}

std::string format_count(std::int64_t n, std::string_view what) {
  return std::to_string(n) + " " + std::string(what) + (n == 1 ? "" : "s");
}

std::string format_scientific(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1e", value);
  return text;
}

std::string format_hash(std::uint64_t hash) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace halocline::app
