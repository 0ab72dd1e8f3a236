// SPDX-License-Identifier: BSD-3-Clause
// Writes the help text around the flags. CLI11 knows the flags; this file says how they look.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "config.hpp"

namespace CLI {
class FormatterBase;
}

namespace halocline::app {

/// Returns the description of a subcommand; without a subcommand, that of the program.
std::string description_of(std::optional<Subcommand> subcommand);

/// Returns the text below the flags: examples, for inspect the notation of datatypes, for the
/// program the exit codes.
std::string footer_of(std::optional<Subcommand> subcommand);

/// Makes the formatter of the help text, which is as wide as the terminal. In CLI11's mode All, the
/// program's text explains each flag of all subcommands once, with all details.
std::shared_ptr<CLI::FormatterBase> make_help_formatter();

/// Returns all flags for programs that write tables of them.
std::string help_as_json();

}  // namespace halocline::app
