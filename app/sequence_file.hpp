// SPDX-License-Identifier: BSD-3-Clause
// Displacement sequences and type maps from files, for `inspect`.
#pragma once

#include <string>

#include "dtype/reconstruct/typed_sequence.hpp"

namespace halocline::app {

/// The displacements of elements of one byte: text with an integer per line, or 64-bit integers of
/// this machine if the name ends in .i64. Empty lines and what follows a # are no elements. Throws
/// ConfigError for a file that cannot be read or has no elements, for anything else on a line, and
/// beyond 2^61.
dtype::TypedSequence read_displacements(const std::string& path);

/// A type map: a predefined type and its displacement in bytes per line, else as above.
dtype::TypedSequence read_type_map(const std::string& path);

}  // namespace halocline::app
