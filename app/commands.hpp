// SPDX-License-Identifier: BSD-3-Clause
// The subcommands. Each is collective over `comm`, returns the exit code of the job (0: ok, 1:
// verification failed), and throws ConfigError and EnvironmentError on every rank or on none; any
// other exception may be one rank's own.
#pragma once

#include <mpi.h>

#include "config.hpp"

namespace halocline::app {

/// Exchange and stencil for config.steps steps, verified, timed per phase.
int run(const Config& config, MPI_Comm comm);

/// The same exchange through each of config.methods, interleaved, verified.
int compare(const Config& config, MPI_Comm comm);

/// Measures the system model of this machine and writes it to config.model or the default place.
int calibrate(const Config& config, MPI_Comm comm);

/// Gathers config.sizes bytes of each rank at config.root by config.variants, interleaved,
/// verified, for each order of config.order.
int gather(const Config& config, MPI_Comm comm);

/// What the exchange of alltoallv would take on config.nodes nodes, by config.model or the model in
/// the default place; writes its pattern to config.traces. Collective; rank 0 alone predicts.
int predict(const Config& config, MPI_Comm comm);

/// Shows what becomes of config.expression: tree, canonical form, plan, and what the installed MPI
/// says where it differs; and the cheapest reconstructions of it, or of config.displacements or
/// config.typemap. Collective; rank 0 alone reads and prints.
int inspect(const Config& config, MPI_Comm comm);

/// Build, MPI, Kokkos, threads and devices of this job.
int info(const Config& config, MPI_Comm comm);

}  // namespace halocline::app
