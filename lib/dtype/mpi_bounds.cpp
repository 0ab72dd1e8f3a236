// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/mpi_bounds.hpp"

#include "support/mpi_check.hpp"

namespace halocline::dtype {

TypeBounds mpi_bounds(MPI_Datatype handle) {
  MPI_Count size = 0, lb = 0, extent = 0, true_lb = 0, true_extent = 0;
  HALOCLINE_MPI(MPI_Type_size_x(handle, &size));
  HALOCLINE_MPI(MPI_Type_get_extent_x(handle, &lb, &extent));
  HALOCLINE_MPI(MPI_Type_get_true_extent_x(handle, &true_lb, &true_extent));
  return {size, lb, extent, true_lb, true_extent};
}

}  // namespace halocline::dtype
