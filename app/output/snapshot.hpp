// SPDX-License-Identifier: BSD-3-Clause
// Writes fields of the whole domain into one file, by collective MPI-IO.
#pragma once

#include <mpi.h>

#include "field_transfer.hpp"
#include "vti.hpp"

namespace halocline::app {

/// Writes the owned points in host memory to snapshot.file() in snapshot.folder, and lists that
/// file in fields.pvd and fields.xmf. An older file stays until the new one is complete.
/// Collective. \throws ConfigError and EnvironmentError on all ranks if the file cannot be written
/// or listed, or if the domain is too large for MPI; no draft is left then.
template <class T>
void write_snapshot(const Snapshot& snapshot, const Domain& domain, const FieldSet<T>& fields,
                    MPI_Comm comm, std::int64_t most_packed_bytes = kMostPackedBytes);

}  // namespace halocline::app
