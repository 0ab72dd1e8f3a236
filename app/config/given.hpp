// SPDX-License-Identifier: BSD-3-Clause
// Holds what the config file and the command line give, and says which of it wins.
#pragma once

#include <set>
#include <string>

#include "options.hpp"

namespace halocline::app {

/// Holds the options that one source gives, such as a section of a file.
struct Given {
  Config values;
  std::set<std::string> names;  ///< of the options that `values` holds

  void add(const Option& option, const Json& value, const std::string& where);
  /// Puts `newer` over the values here. An option also replaces the one that it excludes.
  void override_with(const Given& newer);
  /// \throws ConfigError if two options exclude each other.
  void refuse_excluded(const std::string& where) const;
};

/// Reads the keys that are for `subcommand`: those outside of sections, then those in its section.
/// \throws ConfigError that names the line if any key, value or section cannot be used.
Given read_config_file(const std::string& path, Subcommand subcommand);

struct CommandLine {
  std::string text;  ///< help or version, if the command line asks for that; else empty
  Given given;       ///< with the subcommand and the expression
  bool print_config = false;
};

/// \throws ConfigError if the command line cannot be used.
CommandLine parse_command_line(int argc, const char* const* argv);

}  // namespace halocline::app
