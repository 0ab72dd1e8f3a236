// SPDX-License-Identifier: BSD-3-Clause
// Allocates memory that all ranks of a node can address.
//
// Best peer: GHEX reaches neighbours' fields through XPMEM, if the kernel has that module. MPI-3
// shared windows are everywhere, so the fields are allocated there.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace halocline::comm {

/// Holds memory of this rank that the ranks of its node can address, too: an MPI-3 shared window.
/// The memory is aligned to 4 KiB and has pages of its own. Neither copied nor moved.
class SharedWindow {
 public:
  static constexpr std::int64_t kAlignment = 4096;

  /// Compares needed and available shared memory of this rank's node, in bytes. `available` is the
  /// largest number if the system does not say. It is also the largest number if the rank is alone
  /// on its node, since MPI takes other memory then.
  struct Room {
    std::int64_t needed;  ///< by all ranks of the node, with a reserve for MPI itself
    std::int64_t available;
    bool fits() const { return needed <= available; }
  };
  /// Returns the room for a window with `bytes` bytes for this rank. Collective over `comm`.
  static Room room(MPI_Comm comm, std::int64_t bytes);

  /// Allocates `bytes` bytes for this rank. The contents are undefined. Throws EnvironmentError on
  /// all ranks if a node has no room for its windows. Collective over `comm`.
  SharedWindow(MPI_Comm comm, std::int64_t bytes);
  SharedWindow(const SharedWindow&) = delete;
  SharedWindow& operator=(const SharedWindow&) = delete;
  /// Frees the window unless MPI is finalized. Collective, unless an exception is under way: then
  /// the memory stays until the process ends.
  ~SharedWindow();

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

  /// Returns the offset of `address` in this rank's memory, in bytes; nullopt if it is not there.
  std::optional<std::int64_t> offset_of(const void* address) const;

  /// Returns the address here at which the memory of `rank` begins; nullptr if that rank is on
  /// another node. Ranks are those of the constructor's communicator.
  std::byte* data_of(int rank) const { return others_[static_cast<std::size_t>(rank)]; }

  /// Tells if `comm` has the ranks of the constructor's communicator, in the same order.
  bool has_ranks_of(MPI_Comm comm) const;

  /// Orders loads and stores of the window. Call it before a message that announces writes of this
  /// rank, and after such a message has arrived.
  void sync() const;

 private:
  MPI_Win window_ = MPI_WIN_NULL;
  MPI_Group group_ = MPI_GROUP_NULL;
  std::byte* data_ = nullptr;
  std::int64_t bytes_;
  std::vector<std::byte*> others_;  // by rank
};

}  // namespace halocline::comm
