// SPDX-License-Identifier: BSD-3-Clause
#include "support/measure.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "support/contract.hpp"

namespace halocline {

namespace {

double percentile_of_sorted(const std::vector<double>& sorted, double fraction) {
  const auto position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

}  // namespace

std::vector<std::size_t> order_of_turn(std::size_t methods, std::int64_t turn) {
  std::vector<std::size_t> out(methods);
  if (methods == 0) return out;
  std::iota(out.begin(), out.end(), std::size_t{0});
  const auto pair = static_cast<std::size_t>(turn / 2) % methods;
  std::rotate(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(pair), out.end());
  if (turn % 2 != 0) std::reverse(out.begin(), out.end());
  return out;
}

double percentile(std::vector<double> values, double fraction) {
  HALOCLINE_EXPECT(!values.empty());
  std::sort(values.begin(), values.end());
  return percentile_of_sorted(values, fraction);
}

double median(std::vector<double> values) {
  return percentile(std::move(values), 0.5);
}

Statistics statistics(std::span<const double> samples) {
  HALOCLINE_EXPECT(!samples.empty());
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  return {percentile_of_sorted(sorted, 0.5), percentile_of_sorted(sorted, 0.1),
          percentile_of_sorted(sorted, 0.9), sorted.front(), sorted.back()};
}

}  // namespace halocline
