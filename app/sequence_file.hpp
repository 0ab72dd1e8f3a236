// SPDX-License-Identifier: BSD-3-Clause
// Reads displacement sequences and type maps from files, for `inspect`.
#pragma once

#include <string>

#include "dtype/reconstruct/typed_sequence.hpp"

namespace halocline::app {

/// Reads the displacements of elements of one byte. The file is text with an integer per line. If
/// its name ends in .i64, it holds 64-bit integers of this machine. Empty lines are no elements,
/// and # begins a comment.
/// \throws ConfigError for a file that cannot be read or has no elements, for anything else on a
/// line, and beyond 2^61.
dtype::TypedSequence read_displacements(const std::string& path);

/// Reads a type map: each line has a predefined type and its displacement in bytes. Comments, empty
/// lines and errors are those of read_displacements().
dtype::TypedSequence read_type_map(const std::string& path);

}  // namespace halocline::app
