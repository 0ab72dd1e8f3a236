// SPDX-License-Identifier: BSD-3-Clause
// Allocates memory that all ranks of a node can address.
//
// Best peer: GHEX reaches neighbours' fields through XPMEM, if the kernel has that module. Files
// without names need no module and have huge pages. MPI-3 shared windows are everywhere, so the
// fields are allocated there if such files cannot be opened.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/node/paged_memory.hpp"

namespace halocline::comm {

namespace detail {
class NodeMemory;
}

/// Holds memory of this rank that the ranks of its node can address, too. The memory is aligned to
/// 4 KiB, with huge pages to 2 MiB, and has pages of its own. A memory file of 2 MiB and more lies
/// on huge pages, as far as Linux has them; a window of MPI lies on small ones. Neither copied nor
/// moved.
class SharedWindow {
 public:
  static constexpr std::int64_t kAlignment = 4096;

  /// Lists the kinds of shared memory.
  enum class Kind {
    memory_file,  ///< a file without a name: limited by the node's memory, with huge pages
    mpi_window,   ///< an MPI-3 shared window: limited by /dev/shm, with small pages
  };
  /// Says how the memory is allocated.
  struct Options {
    Pages pages = Pages::huge;
    bool only_mpi = false;    ///< makes a window of MPI even where a memory file is possible
    std::int64_t beside = 0;  ///< bytes that a rank will allocate beside it; their addresses count
  };

  /// Compares needed and available shared memory of this rank's node, in bytes. `available` is the
  /// largest number if shared memory has no limit of its own, as memory files have none. It is also
  /// the largest number if the rank is alone on its node, since MPI takes other memory then.
  struct Room {
    std::int64_t needed;  ///< by all ranks of the node, with MPI's own for windows of MPI
    std::int64_t available;
    bool fits() const { return needed <= available; }
  };
  /// Returns the room for a window with `bytes` bytes for this rank. Collective over `comm`.
  static Room room(MPI_Comm comm, std::int64_t bytes);
  /// Returns the bytes of addresses that a rank must have left for the windows of its node, for
  /// MPI, and for `options.beside`. Collective over `comm`.
  static std::int64_t addresses(MPI_Comm comm, std::int64_t bytes, Options options);

  /// Allocates `bytes` bytes for this rank, near this thread: as a memory file if all ranks of the
  /// node can open each other's, else as a window of MPI. The contents are undefined. Collective
  /// over `comm`.
  /// \throws EnvironmentError on all ranks if a node has no room
  SharedWindow(MPI_Comm comm, std::int64_t bytes, Options options);
  SharedWindow(MPI_Comm comm, std::int64_t bytes) : SharedWindow(comm, bytes, Options{}) {}
  SharedWindow(const SharedWindow&) = delete;
  SharedWindow& operator=(const SharedWindow&) = delete;
  /// Frees the memory. For a window of MPI this is collective. It stays until the process ends if
  /// MPI is finalized or an exception is under way.
  ~SharedWindow();

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }
  Kind kind() const { return kind_; }
  /// Returns the reason why this is a window of MPI; empty if it is not, or was asked for.
  const std::string& why_mpi() const { return why_mpi_; }

  /// Returns the offset of `address` in this rank's memory, in bytes; nullopt if it is not there.
  std::optional<std::int64_t> offset_of(const void* address) const;

  /// Returns the address here at which the memory of `rank` begins; nullptr if that rank is on
  /// another node. Ranks are those of the constructor's communicator.
  std::byte* data_of(int rank) const { return others_[static_cast<std::size_t>(rank)]; }

  /// Returns the same number on all ranks of this window. No other window of these ranks has it.
  std::int64_t number() const { return number_; }
  /// Tells if `comm` has the ranks of the constructor's communicator, in the same order.
  bool has_ranks_of(MPI_Comm comm) const;

  /// Orders loads and stores of the window. Call it before a message that announces writes of this
  /// rank, and after such a message has arrived.
  void sync() const;

 private:
  std::unique_ptr<detail::NodeMemory> memory_;
  Kind kind_;
  std::string why_mpi_;
  MPI_Group group_ = MPI_GROUP_NULL;
  std::byte* data_ = nullptr;
  std::int64_t bytes_, number_ = 0;
  std::vector<std::byte*> others_;  // by rank
};

}  // namespace halocline::comm
