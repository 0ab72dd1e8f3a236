// SPDX-License-Identifier: BSD-3-Clause
// Declares the subcommands. Each is collective over `comm` and returns the exit code of the job (0:
// ok, 1: verification failed). Each throws ConfigError and EnvironmentError on every rank or on
// none. Any other exception may be thrown on one rank alone.
#pragma once

#include <mpi.h>

#include "config.hpp"

namespace halocline::app {

/// Runs exchange and stencil for config.steps steps, verifies the result, and times each phase.
int run(const Config& config, MPI_Comm comm);

/// Compares config.methods: runs the same exchange by each, in turns, and verifies each.
int compare(const Config& config, MPI_Comm comm);

/// Measures the system model of this machine and writes it to config.model or the default place.
int calibrate(const Config& config, MPI_Comm comm);

/// Gathers config.sizes bytes of each rank at config.root by each of config.variants. Variants take
/// turns and are verified, for each order of config.order.
int gather(const Config& config, MPI_Comm comm);

/// Predicts the time of the exchange alltoallv on config.nodes nodes, by the model of config.model
/// or of the default place. Writes the messages as traces to config.traces. Collective; rank 0
/// alone predicts.
int predict(const Config& config, MPI_Comm comm);

/// Shows the forms of config.expression: tree, canonical form, plan, and the answers of the
/// installed MPI that differ. Also shows the cheapest reconstructions of the expression, of
/// config.displacements or of config.typemap. Collective; rank 0 alone reads and prints.
int inspect(const Config& config, MPI_Comm comm);

/// Prints build, MPI, Kokkos, threads and devices of this job.
int info(const Config& config, MPI_Comm comm);

}  // namespace halocline::app
