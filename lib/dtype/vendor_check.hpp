// SPDX-License-Identifier: BSD-3-Clause
// What the installed MPI makes of a datatype.
#pragma once

#include <mpi.h>

#include "dtype/type_tree.hpp"

namespace halocline::dtype {

/// Size and bounds as the installed MPI reports them. Local.
TypeBounds mpi_bounds(MPI_Datatype handle);

}  // namespace halocline::dtype
