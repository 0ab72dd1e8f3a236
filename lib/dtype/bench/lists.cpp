// SPDX-License-Identifier: BSD-3-Clause
// Measures the gain of re-rolling index lists whose author knew more structure than the list shows.
// The loop by hand goes through the list.
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "harness.hpp"
#include "layouts.hpp"

namespace halocline::dtype::bench {

namespace {

Case of_doubles(std::string name, std::vector<int> list) {
  auto expr = blocks_of(1, list, "double");
  return {std::move(name), {{std::move(expr)}}, by_index_list<double, 1>(std::move(list))};
}

// Returns `count` starts in ascending order, at least `room` apart.
std::vector<int> irregular(int count, int room) {
  std::mt19937 random(1);
  std::vector<int> starts;
  for (int i = 0, at = 0; i < count; ++i, at += room + static_cast<int>(random() % 16))
    starts.push_back(at);
  return starts;
}

// Returns the same offsets behind each start.
std::vector<int> at_each(const std::vector<int>& starts, const std::vector<int>& offsets) {
  std::vector<int> list;
  for (const int start : starts)
    for (const int offset : offsets) list.push_back(start + offset);
  return list;
}

std::vector<int> steps(int count, int stride) {
  std::vector<int> list;
  for (int i = 0; i < count; ++i) list.push_back(i * stride);
  return list;
}

void add(std::vector<Case>& cases, int entries, const std::string& suffix) {
  // One column of each row of each plane.
  cases.push_back(
      of_doubles("face" + suffix, at_each(steps(entries / 64, 64 * 66), steps(64, 66))));
  // LAMMPS with an array for each coordinate: x, y and z of the listed atoms.
  const auto atoms = irregular(entries / 3, 1);
  cases.push_back(of_doubles("atoms" + suffix, at_each(atoms, steps(3, atoms.back() + 1))));
  // SPECFEM3D: a face of each listed element of 5 x 5 x 5 points, across or along its rows.
  const auto elements = irregular(entries / 25, 125);
  cases.push_back(of_doubles("element-faces-x" + suffix, at_each(elements, steps(25, 5))));
  cases.push_back(of_doubles("element-faces-y" + suffix,
                             at_each(elements, at_each(steps(5, 25), steps(5, 1)))));
}

}  // namespace

std::vector<Case> lists(const Options& options) {
  std::vector<Case> cases;
  if (!options.smoke) add(cases, 131072, "");
  add(cases, 2048, "-small");
  return cases;
}

}  // namespace halocline::dtype::bench
