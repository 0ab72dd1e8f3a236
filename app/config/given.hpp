// SPDX-License-Identifier: BSD-3-Clause
// Holds the options that the config file and the command line give, and says which of them wins.
#pragma once

#include <set>
#include <string>

#include "options.hpp"

namespace halocline::app {

/// Holds the options that one source gives, such as a section of a file.
struct Given {
  Config values;
  std::set<std::string> names;  ///< names of the options that `values` holds

  void add(const Option& option, const Json& value, const std::string& where);
  /// Copies the options of `newer` over the options here. An option also replaces the one that it
  /// excludes.
  void override_with(const Given& newer);
  /// Checks that no two options exclude each other.
  /// \throws ConfigError if two do.
  void refuse_excluded(const std::string& where) const;
};

/// Reads the keys for `subcommand`: those outside of sections, then those in its section.
/// \throws ConfigError that names the line if any key, value or section cannot be used.
Given read_config_file(const std::string& path, Subcommand subcommand);

struct CommandLine {
  std::string text;  ///< help or version, if the command line asks for one; else empty
  Given given;       ///< with the subcommand and the expression
  bool print_config = false;
};

/// Parses the words of the command line.
/// \throws ConfigError if they cannot be used.
CommandLine parse_command_line(int argc, const char* const* argv);

}  // namespace halocline::app
