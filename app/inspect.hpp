// SPDX-License-Identifier: BSD-3-Clause
// The text, the JSON and the code that `halocline inspect` prints.
#pragma once

#include <string>

#include "config.hpp"
#include "dtype/reconstruct/typed_sequence.hpp"

namespace halocline::app {

/// Names the ways to show an inspection.
enum class View {
  summary,  ///< what a user of the type wants to know
  verbose,  ///< the summary, then trees, plan and reconstructions
  json      ///< one object
};

/// Returns what becomes of a datatype expression. Answers in seconds, whatever the counts are.
/// Throws ConfigError for what is no expression, for what the installed MPI does not make, and for
/// expressions of about 2^23 blocks and more.
std::string inspect_expression(const std::string& expression, View view);

/// Returns the cheapest reconstructions of a sequence.
std::string inspect_sequence(const dtype::TypedSequence& sequence, View view);

/// Returns source code that builds the type of an expression by calls of MPI. Throws as
/// inspect_expression(), and as emitted().
std::string emit_expression(const std::string& expression, Language language);

}  // namespace halocline::app
