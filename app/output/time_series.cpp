// SPDX-License-Identifier: BSD-3-Clause
#include "time_series.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "draft.hpp"
#include "support/error.hpp"
#include "support/text_file.hpp"
#include "vti.hpp"

namespace halocline::app {

TimeSeries::TimeSeries(std::string path, const std::vector<std::string>& columns,
                       std::int64_t first_step)
    : path_(std::move(path)) {
  std::string kept = "step,t,dt";
  for (const auto& column : columns) kept += "," + column;
  kept += "\n";
  if (std::ifstream old(path_); old) {
    std::string line;
    if (std::getline(old, line) && line + "\n" != kept)
      throw ConfigError("output-folder holds a time series with other columns (" +
                        excerpt(path_, 1000) + "): give another output-folder");
    // A row without its end was being written when the program was killed.
    while (std::getline(old, line) && !old.eof())
      if (std::atoll(line.c_str()) < first_step) kept += line + "\n";
  }
  write_whole_file(path_, kept);
}

void TimeSeries::append(std::int64_t step, double time, double dt,
                        const std::vector<double>& numbers) const {
  auto row = std::to_string(step) + "," + shortest(time) + "," + shortest(dt);
  for (const double number : numbers) row += "," + shortest(number);
  errno = 0;
  std::ofstream file(path_, std::ios::app);
  file << row + "\n" << std::flush;
  if (!file) refuse_to_write(path_, std::generic_category().message(errno));
}

}  // namespace halocline::app
