// SPDX-License-Identifier: BSD-3-Clause
// Wraps persistent requests of MPI, and partitioned requests of MPI 4.
#include "comm/mpi/persistent_requests.hpp"

#include "comm/mpi/communicator.hpp"
#include "support/mpi_check.hpp"

namespace halocline::comm {

PersistentRequests::~PersistentRequests() {
  if (mpi_is_over()) return;
  for (auto& request : requests_) MPI_Request_free(&request);
}

void PersistentRequests::add(Role role, void* buffer, int count, MPI_Datatype type, int partner,
                             int tag, MPI_Comm comm, int partitions) {
  const bool sends = role == Role::sender;
  MPI_Request request = MPI_REQUEST_NULL;
  if (partitions > 0) {
#ifdef HALOCLINE_HAS_PARTITIONED
    const int each = count / partitions;
    HALOCLINE_MPI(sends ? MPI_Psend_init(buffer, partitions, each, type, partner, tag, comm,
                                         MPI_INFO_NULL, &request)
                        : MPI_Precv_init(buffer, partitions, each, type, partner, tag, comm,
                                         MPI_INFO_NULL, &request));
#else
    throw ConfigError(
        "no partitioned messages (this MPI has no MPI_Psend_init): use another method, such as "
        "p2p");
#endif
  } else if (sends) {
    HALOCLINE_MPI(MPI_Send_init(buffer, count, type, partner, tag, comm, &request));
  } else {
    HALOCLINE_MPI(MPI_Recv_init(buffer, count, type, partner, tag, comm, &request));
  }
  requests_.push_back(request);
}

void PersistentRequests::start(std::size_t index) {
  HALOCLINE_MPI(MPI_Start(&requests_[index]));
}

void PersistentRequests::start_all() {
  // An MPI may refuse an empty list.
  if (!requests_.empty())
    HALOCLINE_MPI(MPI_Startall(static_cast<int>(requests_.size()), requests_.data()));
}

void PersistentRequests::set_ready([[maybe_unused]] std::size_t index,
                                   [[maybe_unused]] int partition) {
#ifdef HALOCLINE_HAS_PARTITIONED
  HALOCLINE_MPI(MPI_Pready(partition, requests_[index]));
#endif
}

void PersistentRequests::wait_all() {
  HALOCLINE_MPI(
      MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE));
}

std::span<const int> PersistentRequests::some(Some call) {
  indices_.resize(requests_.size());
  int done = 0;
  HALOCLINE_MPI(call(static_cast<int>(requests_.size()), requests_.data(), &done, indices_.data(),
                     MPI_STATUSES_IGNORE));
  return std::span(indices_).first(done == MPI_UNDEFINED ? 0 : static_cast<std::size_t>(done));
}

std::span<const int> PersistentRequests::wait_some() {
  return some(MPI_Waitsome);
}

std::span<const int> PersistentRequests::test_some() {
  return some(MPI_Testsome);
}

bool PersistentRequests::test_all() {
  if (requests_.empty()) return true;  // an MPI may refuse an empty list
  int done = 0;
  HALOCLINE_MPI(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done,
                            MPI_STATUSES_IGNORE));
  return done != 0;
}

}  // namespace halocline::comm
