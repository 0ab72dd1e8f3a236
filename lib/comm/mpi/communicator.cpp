// SPDX-License-Identifier: BSD-3-Clause
// Makes and frees communicators, and lets all ranks throw the same error.
#include "comm/mpi/communicator.hpp"

#include <new>
#include <string>

#include "support/machine.hpp"
#include "support/mpi_check.hpp"

namespace halocline::comm {

Communicator::Communicator(MPI_Comm parent) {
  HALOCLINE_MPI(MPI_Comm_dup(parent, &comm_));
  HALOCLINE_MPI(MPI_Comm_rank(comm_, &rank_));
  HALOCLINE_MPI(MPI_Comm_size(comm_, &size_));
}

Communicator::Communicator(MPI_Comm parent, const std::vector<int>& sources,
                           const std::vector<int>& destinations) {
  HALOCLINE_MPI(MPI_Dist_graph_create_adjacent(
      parent, static_cast<int>(sources.size()), sources.data(), MPI_UNWEIGHTED,
      static_cast<int>(destinations.size()), destinations.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
      &comm_));
  HALOCLINE_MPI(MPI_Comm_rank(comm_, &rank_));
  HALOCLINE_MPI(MPI_Comm_size(comm_, &size_));
}

Communicator::Communicator(MPI_Comm parent, int color, int key) {
  HALOCLINE_MPI(MPI_Comm_split(parent, color, key, &comm_));
  if (comm_ == MPI_COMM_NULL) return;
  HALOCLINE_MPI(MPI_Comm_rank(comm_, &rank_));
  HALOCLINE_MPI(MPI_Comm_size(comm_, &size_));
}

Communicator::~Communicator() {
  if (comm_ != MPI_COMM_NULL && !mpi_is_over()) MPI_Comm_free(&comm_);
}

bool mpi_is_over() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  return finalized != 0;
}

namespace {

// Tells if a text names this rank, as texts on what differs between ranks do.
bool names_rank(const std::string& text, int rank) {
  const auto name = "rank " + std::to_string(rank);
  const auto at = text.find(name), end = at + name.size();
  return at != std::string::npos && (end == text.size() || text[end] < '0' || text[end] > '9');
}

}  // namespace

void detail::agree(MPI_Comm comm, Problem problem, const std::string& message) {
  int rank = 0, size = 1;
  HALOCLINE_MPI(MPI_Comm_rank(comm, &rank));
  HALOCLINE_MPI(MPI_Comm_size(comm, &size));
  int lowest = problem == Problem::none ? size : rank;
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &lowest, 1, MPI_INT, MPI_MIN, comm));
  if (lowest == size) return;

  std::string agreed = message == std::bad_alloc().what() ? kNoMemory : message;
  if (lowest > 0 && !names_rank(agreed, lowest))  // rank 0's errors are mostly those of all ranks
    agreed = "rank " + std::to_string(lowest) + ": " + agreed;
  int header[2] = {static_cast<int>(problem), static_cast<int>(agreed.size())};
  HALOCLINE_MPI(MPI_Bcast(header, 2, MPI_INT, lowest, comm));
  agreed.resize(static_cast<std::size_t>(header[1]));
  HALOCLINE_MPI(MPI_Bcast(agreed.data(), header[1], MPI_CHAR, lowest, comm));
  if (static_cast<Problem>(header[0]) == Problem::config) throw ConfigError(agreed);
  throw EnvironmentError(agreed);
}

}  // namespace halocline::comm
