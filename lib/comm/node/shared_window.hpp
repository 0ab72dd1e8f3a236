// SPDX-License-Identifier: BSD-3-Clause
// Memory that all ranks of a node can address.
//
// Best peer: GHEX reaches neighbours' fields through XPMEM, where the kernel has that module; MPI-3
// shared windows are everywhere, so the fields are put there to begin with.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace halocline::comm {

/// Memory of this rank, aligned to 4 KiB and of pages of its own, that the other ranks of its node
/// can address, too: an MPI-3 shared window. Neither copied nor moved.
class SharedWindow {
 public:
  static constexpr std::int64_t kAlignment = 4096;

  /// Shared memory of this rank's node, in bytes; available is the largest number where the system
  /// does not tell, or where the rank is alone and MPI takes other memory.
  struct Room {
    std::int64_t needed;  ///< by all ranks, with some to spare for MPI itself
    std::int64_t available;
    bool fits() const { return needed <= available; }
  };
  /// For a window of `bytes` for this rank. Collective over `comm`.
  static Room room(MPI_Comm comm, std::int64_t bytes);

  /// `bytes` for this rank; the contents are undefined. Throws EnvironmentError on all ranks if a
  /// node has no room for it. Collective over `comm`.
  SharedWindow(MPI_Comm comm, std::int64_t bytes);
  SharedWindow(const SharedWindow&) = delete;
  SharedWindow& operator=(const SharedWindow&) = delete;
  /// Frees it unless MPI is finalized by then. Collective, unless an exception is under way: then
  /// the memory stays until the process ends.
  ~SharedWindow();

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

  /// Where an address of this rank's memory is in it; nullopt for others.
  std::optional<std::int64_t> offset_of(const void* address) const;

  /// Where the memory of another rank of the constructor's communicator begins here; nullptr if
  /// that is on another node.
  std::byte* data_of(int rank) const { return others_[static_cast<std::size_t>(rank)]; }

  /// Whether the ranks of `comm` are those of the constructor's communicator, in the same order.
  bool has_ranks_of(MPI_Comm comm) const;

  /// Makes what this rank has written visible to who is told so by a message afterwards, and to
  /// this one what others had written before they told it.
  void sync() const;

 private:
  MPI_Win window_ = MPI_WIN_NULL;
  MPI_Group group_ = MPI_GROUP_NULL;
  std::byte* data_ = nullptr;
  std::int64_t bytes_;
  std::vector<std::byte*> others_;  // by rank
};

}  // namespace halocline::comm
