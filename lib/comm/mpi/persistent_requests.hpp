// SPDX-License-Identifier: BSD-3-Clause
// Sends and receives the same messages again and again.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <span>
#include <vector>

#include "comm/mpi/role.hpp"

namespace halocline::comm {

/// Holds persistent requests. Their indices are the order in which they were added. Frees them
/// unless MPI is finalized. All calls are local. Throws MpiError for what MPI refuses. Neither
/// copied nor moved.
class PersistentRequests {
 public:
  PersistentRequests() = default;
  PersistentRequests(const PersistentRequests&) = delete;
  PersistentRequests& operator=(const PersistentRequests&) = delete;
  ~PersistentRequests();

  /// Adds a message of `count` instances to or from `partner`. `partitions`: number of partitions,
  /// which divides the count; 0: none. Throws ConfigError for a partitioned message if this MPI has
  /// none (MPI 4).
  void add(Role role, void* buffer, int count, MPI_Datatype type, int partner, int tag,
           MPI_Comm comm, int partitions = 0);

  void start(std::size_t index);
  void start_all();
  /// Marks a partition of an active partitioned send as ready to leave.
  void set_ready(std::size_t index, int partition);
  /// Waits until no request is active.
  void wait_all();
  /// Waits until some of the active requests are complete. Returns their indices, none if no
  /// request is active. The indices are valid until the next call.
  std::span<const int> wait_some();
  /// Returns the indices of active requests that are complete by now, perhaps none. Lets MPI make
  /// progress. The indices are valid until the next call.
  std::span<const int> test_some();
  /// Tells if no request is active. Lets MPI make progress. The requests that complete here are not
  /// reported by the calls above.
  bool test_all();

 private:
  using Some = int (*)(int, MPI_Request[], int*, int[], MPI_Status[]);
  std::span<const int> some(Some call);

  std::vector<MPI_Request> requests_;
  std::vector<int> indices_;
};

}  // namespace halocline::comm
