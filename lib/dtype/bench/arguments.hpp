// SPDX-License-Identifier: BSD-3-Clause
// Reads the command line of the benchmarks with groups of rows.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace halocline::dtype::bench {

struct Arguments {
  std::vector<std::string> groups;  ///< each once, in the order given; by default all
  std::string only = "*";           ///< pattern of the names of cases
  std::string model;                ///< file of a system model
  bool quick = false, smoke = false, json = false;
};

/// Describes the command line of a program.
struct ArgumentsHelp {
  std::string what;  ///< purpose of the program, for --help
  std::vector<std::string> groups;
  bool takes_model = false;
};

/// Reads the command line. Returns nullopt if it asks for help; the help is printed to stdout if
/// `print`. Throws ConfigError.
std::optional<Arguments> parse_arguments(int argc, char** argv, const ArgumentsHelp& help,
                                         bool print = true);

}  // namespace halocline::dtype::bench
