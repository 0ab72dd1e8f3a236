// SPDX-License-Identifier: BSD-3-Clause
// Owned communicators and collective errors.
#pragma once

#include <mpi.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "dtype/support/error.hpp"

namespace halocline::comm {

/// Owner of a communicator that is made of another one, so that our messages never meet the user's;
/// freed unless MPI is finalized by then.
class Communicator {
 public:
  /// A duplicate. Collective over `parent`.
  explicit Communicator(MPI_Comm parent);
  /// With a graph topology of the ranks from which this one receives and to which it sends; ranks
  /// keep their numbers. Collective over `parent`.
  Communicator(MPI_Comm parent, const std::vector<int>& sources,
               const std::vector<int>& destinations);
  /// Of the ranks of one color, by ascending key; MPI_COMM_NULL for MPI_UNDEFINED. Collective over
  /// `parent`.
  Communicator(MPI_Comm parent, int color, int key);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator();

  MPI_Comm get() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
};

/// Whether MPI is finalized: then nothing is left to be freed.
bool mpi_is_over();

namespace detail {
enum class Problem { none, config, environment };
void agree(MPI_Comm comm, Problem problem, const std::string& message);
}  // namespace detail

/// Runs `local`, which must not communicate, on every rank and agrees on the outcome: if it threw
/// an Error anywhere, every rank throws the one of the lowest such rank, as ConfigError (bad input)
/// or EnvironmentError (all else). Collective over `comm`.
template <class F>
void collectively(MPI_Comm comm, F&& local) {
  auto problem = detail::Problem::none;
  std::string message;
  try {
    std::forward<F>(local)();
  } catch (const ConfigError& error) {
    problem = detail::Problem::config;
    message = error.what();
  } catch (const std::exception& error) {
    problem = detail::Problem::environment;
    message = error.what();
  }
  detail::agree(comm, problem, message);
}

}  // namespace halocline::comm
