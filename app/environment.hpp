// SPDX-License-Identifier: BSD-3-Clause
// MPI for the length of the program, errors that all ranks share, and this rank's share of its
// node.
#pragma once

#include <mpi.h>

#include <functional>
#include <string>

#include "config.hpp"

namespace halocline::app {

/// MPI from construction to destruction, at MPI_THREAD_FUNNELED, with MPI_ERRORS_RETURN on
/// MPI_COMM_WORLD and MPI_COMM_SELF, so that every failing call becomes an MpiError. Collective
/// over all processes, both ways.
class MpiEnvironment {
 public:
  MpiEnvironment(int* argc, char*** argv);
  MpiEnvironment(const MpiEnvironment&) = delete;
  MpiEnvironment& operator=(const MpiEnvironment&) = delete;
  ~MpiEnvironment();
};

int rank_of(MPI_Comm comm);
int size_of(MPI_Comm comm);

/// The text that rank 0 has, on every rank. Collective.
std::string broadcast(std::string text, MPI_Comm comm);

/// Runs `action` on rank 0 alone. A ConfigError or EnvironmentError that it throws is thrown on
/// every rank, with the same message; an MpiError or any other exception on rank 0 alone.
/// Collective.
void on_root(MPI_Comm comm, const std::function<void()>& action);

/// Writes `text` to stdout and flushes it. Throws EnvironmentError if that fails. Local.
void print(const std::string& text);

/// How many threads a rank uses, and why in a few words ("--threads", "OMP_NUM_THREADS", ...).
struct ThreadChoice {
  int threads = 1;
  std::string reason;
};

/// config.threads if positive, else KOKKOS_NUM_THREADS or OMP_NUM_THREADS if set, else the cores
/// that the ranks of this node may use divided by their number, at least 1 and no more than this
/// rank is bound to. Collective.
ThreadChoice choose_threads(const Config& config, MPI_Comm comm);

/// Number of hardware threads that this process may run on.
int bound_cores();

}  // namespace halocline::app
