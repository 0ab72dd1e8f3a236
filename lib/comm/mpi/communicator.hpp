// SPDX-License-Identifier: BSD-3-Clause
// Owns communicators, and agrees on errors across ranks.
#pragma once

#include <mpi.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "support/error.hpp"

namespace halocline::comm {

/// Owns a communicator that is made of another one, so that our messages never meet the user's.
/// Frees it unless MPI is finalized.
class Communicator {
 public:
  /// Duplicates `parent`. Collective over `parent`.
  explicit Communicator(MPI_Comm parent);
  /// Makes a communicator with a graph topology: this rank receives from `sources` and sends to
  /// `destinations`. Ranks keep their numbers. Collective over `parent`.
  Communicator(MPI_Comm parent, const std::vector<int>& sources,
               const std::vector<int>& destinations);
  /// Makes a communicator of the ranks of one color, by ascending key. MPI_COMM_NULL for the color
  /// MPI_UNDEFINED. Collective over `parent`.
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

/// Tells if MPI is finalized. Then no MPI object can be freed.
bool mpi_is_over();

namespace detail {
enum class Problem { none, config, environment };
void agree(MPI_Comm comm, Problem problem, const std::string& message);
}  // namespace detail

/// Runs `local`, which must not communicate, on every rank. If it threw on some ranks, every rank
/// throws the error of the lowest of them. The text names that rank unless it is rank 0. A
/// ConfigError stays one, anything else becomes an EnvironmentError. Collective over `comm`.
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
