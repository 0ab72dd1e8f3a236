// SPDX-License-Identifier: BSD-3-Clause
// Holds MPI for the length of the program. Shares errors, texts and times among all ranks, and
// finds this rank's share of its node.
#pragma once

#include <mpi.h>

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "config.hpp"
#include "support/error.hpp"

namespace halocline::app {

/// Is MPI from construction to destruction, at MPI_THREAD_FUNNELED. Sets MPI_ERRORS_RETURN on
/// MPI_COMM_WORLD and MPI_COMM_SELF, so that every failing call becomes an MpiError. Construction
/// and destruction are collective over all processes.
class MpiEnvironment {
 public:
  MpiEnvironment(int* argc, char*** argv);
  MpiEnvironment(const MpiEnvironment&) = delete;
  MpiEnvironment& operator=(const MpiEnvironment&) = delete;
  ~MpiEnvironment();
};

int rank_of(MPI_Comm comm);
int size_of(MPI_Comm comm);

/// Returns rank 0's text on every rank. Collective.
std::string broadcast(std::string text, MPI_Comm comm);

/// Runs `action` on rank 0 alone. Collective.
/// \throws ConfigError and EnvironmentError of `action` on every rank, with the same message. An
/// MpiError or any other exception is thrown on rank 0 alone.
void run_on_root(MPI_Comm comm, const std::function<void()>& action);

/// Writes `text` to stdout and flushes it. Local.
/// \throws EnvironmentError if that fails.
void print(const std::string& text);

/// Prints `text` on rank 0 unless --quiet. Collective.
/// \throws EnvironmentError on all ranks if that fails.
void say(const Config& config, MPI_Comm comm, const std::string& text);

/// Prints lines on rank 0's stderr, also if the run is quiet. Collective.
void warn(MPI_Comm comm, const std::string& text);

/// Prints one line on rank 0's stderr: "halocline: verification failed (" and `what`. Collective.
void report_failure(MPI_Comm comm, const std::string& what);

/// Runs `write` on rank 0, then `show` on all ranks, and returns the exit code of `show`. An
/// EnvironmentError of `write` is thrown after `show`, so that a full disk does not suppress the
/// tables. Collective.
template <class Write, class Show>
int write_and_show(MPI_Comm comm, Write write, Show show) {
  std::exception_ptr unwritten;
  try {
    run_on_root(comm, write);
  } catch (const MpiError&) {
    throw;  // this rank's own error
  } catch (const EnvironmentError&) {
    unwritten = std::current_exception();
  }
  const int code = show();
  if (unwritten) std::rethrow_exception(unwritten);
  return code;
}

/// Holds the times of one phase, in seconds, one per iteration.
using Samples = std::vector<double>;

/// Returns the largest value over the ranks of each sample. Collective; all ranks pass equally many
/// samples.
Samples max_over_ranks(Samples samples, MPI_Comm comm);

/// Holds the number of threads of a rank and its reason in a few words ("--threads",
/// "OMP_NUM_THREADS", ...).
struct ThreadChoice {
  int threads = 1;
  std::string reason;
  int wanted = threads;  ///< number that was asked for; more than `threads` if Kokkos has no room
                         ///< for all of them
};

/// Chooses the number of threads of this rank. The first of these sources that is set wins:
/// config.threads, KOKKOS_NUM_THREADS, OMP_NUM_THREADS. Without them it is an equal share of the
/// cores that the ranks of this node may use. A share is at least 1 and at most the cores that this
/// rank is bound to. Every number is limited to dtype::kMostKokkosThreads. Collective.
ThreadChoice choose_threads(const Config& config, MPI_Comm comm);

/// Returns the number of hardware threads that this process may run on.
int bound_cores();

}  // namespace halocline::app
