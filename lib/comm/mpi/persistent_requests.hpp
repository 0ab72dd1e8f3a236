// SPDX-License-Identifier: BSD-3-Clause
// Messages that are sent and received again and again.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <span>
#include <vector>

namespace halocline::comm {

/// Persistent requests, by index in the order in which they were added; freed unless MPI is
/// finalized by then. All calls are local; what MPI refuses is an MpiError. Neither copied nor
/// moved.
class PersistentRequests {
 public:
  PersistentRequests() = default;
  PersistentRequests(const PersistentRequests&) = delete;
  PersistentRequests& operator=(const PersistentRequests&) = delete;
  ~PersistentRequests();

  enum class Direction { send, receive };

  /// A message of `count` instances to or from `partner`. With `partitions`, which divide the
  /// count, a partitioned one of MPI 4, where there are; else that is a ConfigError.
  void add(Direction direction, void* buffer, int count, MPI_Datatype type, int partner, int tag,
           MPI_Comm comm, int partitions = 0);

  void start(std::size_t index);
  void start_all();
  /// A partition of an active partitioned send is in its buffer.
  void set_ready(std::size_t index, int partition);
  /// Returns when none is active.
  void wait_all();
  /// Waits for some of the active ones; their indices, none if none is active. Valid until the
  /// next call.
  std::span<const int> wait_some();
  /// Likewise those that are complete by now, perhaps none; lets MPI progress.
  std::span<const int> test_some();

 private:
  using Some = int (*)(int, MPI_Request[], int*, int[], MPI_Status[]);
  std::span<const int> some(Some call);

  std::vector<MPI_Request> requests_;
  std::vector<int> indices_;
};

}  // namespace halocline::comm
