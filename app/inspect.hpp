// SPDX-License-Identifier: BSD-3-Clause
// The text and the JSON that `halocline inspect` prints.
#pragma once

#include <string>

#include "dtype/reconstruct/typed_sequence.hpp"

namespace halocline::app {

/// Returns what becomes of a datatype expression: one JSON object or text for people. Answers in
/// seconds, whatever the counts are. Throws ConfigError for what is no expression, for what the
/// installed MPI does not make, and for expressions of about 2^23 blocks and more.
std::string inspect_expression(const std::string& expression, bool json);

/// Returns the cheapest reconstructions of a sequence, likewise.
std::string inspect_sequence(const dtype::TypedSequence& sequence, bool json);

}  // namespace halocline::app
