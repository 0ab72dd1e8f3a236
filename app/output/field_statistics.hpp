// SPDX-License-Identifier: BSD-3-Clause
// Finds the range of each field, and values that are no numbers.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "comm/halo/direction.hpp"
#include "fields.hpp"

namespace halocline::app {

/// Describes the values of a field at all points of the domain.
struct FieldStatistics {
  double least, rms, largest;
};

/// Returns the statistics of all fields, from their owned points in host memory. The range is the
/// same on every number of ranks; the root mean square may differ in its last bits. Values that are
/// not finite count for nothing. Collective.
template <class T>
std::vector<FieldStatistics> field_statistics(const Domain& domain, const FieldSet<T>& fields,
                                              MPI_Comm comm);

/// Names a value of a field.
struct FieldPoint {
  int field;
  comm::Int3 point;  ///< global coordinates
};

/// Returns the first point of the domain that holds a NaN or an infinity in host memory; nullopt if
/// there is none. The same on every number of ranks. Collective.
template <class T>
std::optional<FieldPoint> find_not_finite(const Domain& domain, const FieldSet<T>& fields,
                                          MPI_Comm comm);

}  // namespace halocline::app
