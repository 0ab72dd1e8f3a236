// SPDX-License-Identifier: BSD-3-Clause
// Holds the one table of options. Flags, keys of a config file, help, manual and --print-config
// follow it.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "config.hpp"

namespace halocline::app {

using Json = nlohmann::ordered_json;
using Tokens = std::vector<std::string>;

/// Begins the heading of the parameters of a physics, which the short help leaves out.
inline constexpr const char* kParametersOf = "Parameters of ";
/// Is the heading of kinds of boundaries, which the short help leaves out, too.
inline constexpr const char* kBoundaries = "Boundaries";
/// Is the heading of the padding of rows, which the short help leaves out, too.
inline constexpr const char* kPadding = "Padding";
/// Is the heading of time series, checkpoints, snapshots and slices, which the short help leaves
/// out, too.
inline constexpr const char* kFilesOfRun = "Files of a run";

/// Describes a member of Config to all code that reads, writes or explains it.
struct Option {
  std::string name;      ///< long flag without its dashes, and key in a file
  std::string group;     ///< heading in the help text; empty: hidden
  std::string argument;  ///< as shown in the help text; empty: a switch
  int words = 1;         ///< largest number of arguments of the flag
  bool in_file = true;
  std::string excludes;            ///< name of the option that this one rules out; empty: none
  std::string expected;            ///< allowed values, to follow "give "
  std::vector<std::string> names;  ///< names that values are made of; empty: none
  std::vector<Subcommand> users;
  std::string meaning;  ///< a few words
  std::string details;  ///< whole sentences; may be empty
  std::string default_text;
  std::function<bool(const Json&, Config&)> read;  ///< false: the value cannot be used
  std::function<Json(const Config&)> write;
  std::function<Json(const Tokens&)> from_tokens;  ///< makes the JSON for `read` from a flag's
                                                   ///< words
  std::function<void(const Config& from, Config& to)> copy;

  bool is_used_by(Subcommand one) const;
};

/// Returns all options in the order of the help text.
const std::vector<Option>& options();

/// Returns the option of this name, nullptr if there is none.
const Option* find_option(std::string_view name);

/// Sets one member of `config`. `where` ends the error message.
/// \throws ConfigError if the option cannot use the value.
void set(const Option& option, const Json& value, const std::string& where, Config& config);

}  // namespace halocline::app
