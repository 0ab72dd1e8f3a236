// SPDX-License-Identifier: BSD-3-Clause
// The command line of the benchmarks with groups of rows.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace halocline::dtype::bench {

struct Arguments {
  std::vector<std::string> groups;  ///< each once, in the order given; all if none was
  std::string only = "*";           ///< pattern of the names of cases
  std::string model;                ///< file of a system model
  bool quick = false, smoke = false, json = false;
};

/// What a program takes.
struct ArgumentsHelp {
  std::string what;  ///< the program does, for --help
  std::vector<std::string> groups;
  bool takes_model = false;
};

/// Reads the command line; nullopt if that asks for help, which is printed to stdout if `print`.
/// Throws ConfigError.
std::optional<Arguments> parse_arguments(int argc, char** argv, const ArgumentsHelp& help,
                                         bool print = true);

}  // namespace halocline::dtype::bench
