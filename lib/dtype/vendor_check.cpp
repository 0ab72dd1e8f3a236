// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/vendor_check.hpp"

#include "dtype/datatype.hpp"
#include "dtype/support/mpi_check.hpp"

namespace halocline::dtype {

TypeBounds mpi_bounds(MPI_Datatype handle) {
  MPI_Count size = 0, lb = 0, extent = 0, true_lb = 0, true_extent = 0;
  HALOCLINE_MPI(MPI_Type_size_x(handle, &size));
  HALOCLINE_MPI(MPI_Type_get_extent_x(handle, &lb, &extent));
  HALOCLINE_MPI(MPI_Type_get_true_extent_x(handle, &true_lb, &true_extent));
  return {size, lb, extent, true_lb, true_extent};
}

std::optional<std::string> mpi_disagreement(const TypeExpr& expr) {
  for (const auto& inner : types_inside(expr))
    if (auto found = mpi_disagreement(*inner)) return found;
  const auto ours = type_bounds(expr);
  const auto theirs = mpi_bounds(make_datatype(expr).get());
  if (ours.size == theirs.size && ours.lb == theirs.lb && ours.extent == theirs.extent)
    return std::nullopt;
  const auto text = [](const TypeBounds& b) {
    return "size " + std::to_string(b.size) + ", lb " + std::to_string(b.lb) + ", extent " +
           std::to_string(b.extent);
  };
  return "MPI reports " + text(theirs) + " for " + to_string(expr) + ", which has " + text(ours);
}

}  // namespace halocline::dtype
