// SPDX-License-Identifier: BSD-3-Clause
// Asks the installed MPI for its view of a datatype.
#pragma once

#include <mpi.h>

#include "dtype/type_tree.hpp"

namespace halocline::dtype {

/// Returns size and bounds as the installed MPI reports them, in bytes. Local. Throws MpiError if a
/// call fails.
TypeBounds mpi_bounds(MPI_Datatype handle);

}  // namespace halocline::dtype
