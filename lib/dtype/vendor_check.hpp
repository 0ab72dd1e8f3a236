// SPDX-License-Identifier: BSD-3-Clause
// What the installed MPI makes of a datatype, beside what the standard says.
#pragma once

#include <mpi.h>

#include <optional>
#include <string>

#include "dtype/type_expr.hpp"
#include "dtype/type_tree.hpp"

namespace halocline::dtype {

/// Size and bounds as the installed MPI reports them. Local.
TypeBounds mpi_bounds(MPI_Datatype handle);

/// Where the installed MPI has another size, lb or extent than the standard for `expr` or a type
/// inside it: the innermost such type with both values, or nothing. MPI_Pack is often wrong with
/// such a sign, and without one for few types only, which results/vendor-bugs names per MPI. Local;
/// makes and frees every type of the nesting.
std::optional<std::string> mpi_disagreement(const TypeExpr& expr);

}  // namespace halocline::dtype
