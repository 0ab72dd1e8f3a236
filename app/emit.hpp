// SPDX-License-Identifier: BSD-3-Clause
// Source code that builds a datatype, printed by `halocline inspect --emit`.
#pragma once

#include <string>

#include "config.hpp"
#include "dtype/type_expr.hpp"

namespace halocline::app {

/// Returns a function in C, or a subroutine in Fortran, that makes and commits `expr` by MPI's own
/// constructors; types that occur twice are made once. `title` stands in the comment above it.
/// Precondition: `expr` holds constructors of MPI alone. Throws ConfigError for numbers that MPI's
/// calls do not take, and for lists of more than 1000 entries.
std::string emitted(const dtype::TypeExpr& expr, const std::string& title, Language language);

}  // namespace halocline::app
