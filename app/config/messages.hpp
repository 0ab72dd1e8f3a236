// SPDX-License-Identifier: BSD-3-Clause
// Writes the lines that refuse a user's input.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "options.hpp"

namespace halocline::app {

/// Throws ConfigError with the message "problem (cause): remedy": one line of limited length.
[[noreturn]] void refuse(const std::string& problem, const std::string& cause,
                         const std::string& remedy);

/// Refuses a value of an option; `where` names the place of the value.
[[noreturn]] void refuse_value(const Option& option, const std::string& value,
                               const std::string& where);

/// Returns a value as a user may have written it: one short line, whatever bytes the value holds.
std::string shown(const Json& value);

bool is_utf8(const std::string& text);

/// Returns the name in `names` that is nearest to `word`; empty if none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& names);

/// Says what to do about a flag or key that `subcommand` does not have. `dashes` stand before
/// flags.
std::string remedy_for(const std::string& name, Subcommand subcommand, const std::string& dashes);

}  // namespace halocline::app
