// SPDX-License-Identifier: BSD-3-Clause
// The help: CLI11 knows the flags, this says how they look, and what stands around them.
#pragma once

#include <memory>
#include <string>

#include "config.hpp"

namespace CLI {
class FormatterBase;
}

namespace halocline::app {

std::string description_of_program();
std::string description_of(Subcommand subcommand);

/// Returns the examples and the exit codes.
std::string footer_of_program();

/// Returns the examples; for inspect the notation of datatypes, too.
std::string footer_of(Subcommand subcommand);

/// Makes what writes a help text, as wide as the terminal. In the mode All the program's text
/// explains each flag of all subcommands once, with all details.
std::shared_ptr<CLI::FormatterBase> make_help_formatter();

/// Returns all flags for programs that write tables of them.
std::string help_as_json();

}  // namespace halocline::app
