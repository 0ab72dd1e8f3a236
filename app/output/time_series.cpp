// SPDX-License-Identifier: BSD-3-Clause
#include "time_series.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "draft.hpp"
#include "support/error.hpp"
#include "support/text_file.hpp"
#include "vti.hpp"

namespace halocline::app {

namespace {

// Returns the numbers of a row.
std::vector<double> numbers_of_row(const std::string& row) {
  std::vector<double> out;
  std::istringstream cells(row);
  for (std::string cell; std::getline(cells, cell, ',');)
    out.push_back(std::strtod(cell.c_str(), nullptr));
  return out;
}

}  // namespace

TimeSeries::TimeSeries(std::string path, const std::vector<std::string>& columns,
                       const std::vector<std::string_view>& conserved, std::int64_t first_step)
    : path_(std::move(path)) {
  constexpr std::size_t kBefore = 3;  // step, t, dt
  for (const auto name : conserved)
    conserved_.push_back(static_cast<std::size_t>(std::find(columns.begin(), columns.end(), name) -
                                                  columns.begin()));
  std::string kept = "step,t,dt";
  for (const auto& column : columns) kept += "," + column;
  for (const auto name : conserved) kept.append(",").append(name).append("_drift");
  kept += "\n";
  if (std::ifstream old(path_); old) {
    std::string line;
    if (std::getline(old, line) && line + "\n" != kept)
      throw ConfigError("output-folder holds a time series with other columns (" +
                        excerpt(path_, 1000) + "): give another output-folder");
    // A row without its end was being written when the program was killed.
    while (std::getline(old, line) && !old.eof()) {
      if (std::atoll(line.c_str()) >= first_step) continue;
      kept += line + "\n";
      auto numbers = numbers_of_row(line);
      numbers.resize(kBefore + columns.size());
      if (first_.empty())
        for (const auto column : conserved_) first_.push_back(numbers[kBefore + column]);
    }
  }
  write_whole_file(path_, kept);
}

void TimeSeries::append(std::int64_t step, double time, double dt,
                        const std::vector<double>& numbers) {
  if (first_.empty())
    for (const auto column : conserved_) first_.push_back(numbers[column]);
  auto row = std::to_string(step) + "," + shortest(time) + "," + shortest(dt);
  for (const double number : numbers) row += "," + shortest(number);
  for (std::size_t i = 0; i < conserved_.size(); ++i)
    row += "," + shortest((numbers[conserved_[i]] - first_[i]) / first_[i]);
  errno = 0;
  std::ofstream file(path_, std::ios::app);
  file << row + "\n" << std::flush;
  if (!file) refuse_to_write(path_, std::generic_category().message(errno));
}

}  // namespace halocline::app
