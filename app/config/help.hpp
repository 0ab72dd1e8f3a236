// SPDX-License-Identifier: BSD-3-Clause
// The help: CLI11 knows the flags, this says how they look, and what stands around them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "config.hpp"

namespace CLI {
class FormatterBase;
}

namespace halocline::app {

/// Says what a subcommand does; without one, what the program does.
std::string description_of(std::optional<Subcommand> subcommand);

/// Returns examples, and what else stands below the flags: for inspect the notation of datatypes,
/// for the program the exit codes.
std::string footer_of(std::optional<Subcommand> subcommand);

/// Makes what writes a help text, as wide as the terminal. In the mode All the program's text
/// explains each flag of all subcommands once, with all details.
std::shared_ptr<CLI::FormatterBase> make_help_formatter();

/// Returns all flags for programs that write tables of them.
std::string help_as_json();

}  // namespace halocline::app
