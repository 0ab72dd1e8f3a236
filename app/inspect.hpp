// SPDX-License-Identifier: BSD-3-Clause
// Returns the text, the JSON and the code that `halocline inspect` prints.
#pragma once

#include <string>

#include "config.hpp"
#include "dtype/reconstruct/typed_sequence.hpp"

namespace halocline::app {

/// Lists the ways to show an inspection.
enum class View {
  summary,  ///< facts for a user of the type
  verbose,  ///< the summary, then trees, plan and reconstructions
  json      ///< one JSON object
};

/// Returns a report on a datatype expression. Takes seconds, whatever the counts are.
/// \throws ConfigError for a text that is no expression, and for a type that the installed MPI does
/// not make. Also thrown for expressions of about 2^23 blocks and more.
std::string inspect_expression(const std::string& expression, View view);

/// Returns a report on the cheapest reconstructions of a sequence.
std::string inspect_sequence(const dtype::TypedSequence& sequence, View view);

/// Returns source code that builds the type of an expression by calls of MPI.
/// \throws ConfigError under the conditions of inspect_expression() and emitted().
std::string emit_expression(const std::string& expression, Language language);

}  // namespace halocline::app
