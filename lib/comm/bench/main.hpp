// SPDX-License-Identifier: BSD-3-Clause
// Starts and ends the benchmarks that run on several ranks.
#pragma once

#include <mpi.h>

#include <cstdio>
#include <exception>

#include "dtype/bench/rows.hpp"
#include "support/error.hpp"

namespace halocline::comm::bench {

/// Runs `run(argc, argv)` between MPI_Init and MPI_Finalize and returns its result. Returns 2 for a
/// ConfigError, which all ranks throw. Other errors end the job with 3.
template <class Run>
int run_with_mpi(const char* program, int argc, char** argv, Run run) {
  MPI_Init(&argc, &argv);
  int rank = 0, code = 3;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    code = run(argc, argv);
  } catch (const ConfigError& error) {
    if (rank == 0) std::fprintf(stderr, "%s: %s\n", program, error.what());
    code = 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program, error.what());
    MPI_Abort(MPI_COMM_WORLD, code);
  }
  MPI_Finalize();
  return dtype::bench::end_output(program, code);
}

}  // namespace halocline::comm::bench
