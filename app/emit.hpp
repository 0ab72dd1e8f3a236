// SPDX-License-Identifier: BSD-3-Clause
// Prints source code that builds a datatype, for `halocline inspect --emit`.
#pragma once

#include <string>

#include "config.hpp"
#include "dtype/type_expr.hpp"

namespace halocline::app {

/// Returns a function in C, or a subroutine in Fortran, that makes and commits `expr`. The code
/// calls MPI's own constructors and makes a type that occurs twice only once. `title` is the
/// comment above the code. Precondition: `expr` holds constructors of MPI alone.
/// \throws ConfigError for numbers that MPI's calls do not take, and for lists of more than 1000
/// entries.
std::string emitted(const dtype::TypeExpr& expr, const std::string& title, Language language);

}  // namespace halocline::app
