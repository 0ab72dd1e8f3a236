// SPDX-License-Identifier: BSD-3-Clause
// MPI for the length of the program, errors, texts and times that all ranks share, and this rank's
// share of its node.
#pragma once

#include <mpi.h>

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "config.hpp"
#include "dtype/support/error.hpp"

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

/// Prints `text` on rank 0 unless --quiet. Throws EnvironmentError on all ranks if that fails.
/// Collective.
void say(const Config& config, MPI_Comm comm, const std::string& text);

/// One line on rank 0's stderr: "halocline: verification failed (" and `what`. Collective.
void report_failure(MPI_Comm comm, const std::string& what);

/// Runs `write` on rank 0, then `show` on all, whose exit code it returns; what writing failed with
/// is thrown after that, so that a full disk keeps nobody from the tables. Collective.
template <class Write, class Show>
int write_and_show(MPI_Comm comm, Write write, Show show) {
  std::exception_ptr unwritten;
  try {
    on_root(comm, write);
  } catch (const MpiError&) {
    throw;  // of this rank alone
  } catch (const EnvironmentError&) {
    unwritten = std::current_exception();
  }
  const int code = show();
  if (unwritten) std::rethrow_exception(unwritten);
  return code;
}

/// Times of one phase, in seconds, one per iteration.
using Samples = std::vector<double>;

/// The largest over the ranks of each sample. Collective; all ranks pass equally many.
Samples max_over_ranks(Samples samples, MPI_Comm comm);

/// How many threads a rank uses, and why in a few words ("--threads", "OMP_NUM_THREADS", ...).
struct ThreadChoice {
  int threads = 1;
  std::string reason;
  int wanted = threads;  ///< more than `threads` where Kokkos has no room for all of them
};

/// config.threads if positive, else KOKKOS_NUM_THREADS or OMP_NUM_THREADS if set, else the cores
/// that the ranks of this node may use divided by their number, at least 1 and no more than this
/// rank is bound to; at most dtype::kMostKokkosThreads. Collective.
ThreadChoice choose_threads(const Config& config, MPI_Comm comm);

/// Number of hardware threads that this process may run on.
int bound_cores();

}  // namespace halocline::app
