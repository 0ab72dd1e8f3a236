// SPDX-License-Identifier: BSD-3-Clause
// Allocates MPI-3 shared windows after a check for room, and queries the partners' addresses.
#include "comm/node/shared_window.hpp"

#include <sys/statvfs.h>

#include <exception>
#include <string>

#include "comm/mpi/communicator.hpp"
#include "support/mpi_check.hpp"

namespace halocline::comm {

namespace {

// MPIs on Linux keep shared memory in this file system of limited size. An MPI that allocates
// without a check ends with a bus error when the memory is touched. Open MPI checks, but hangs: the
// rank that gets no memory does not notify its partners.
constexpr const char* kSharedMemory = "/dev/shm";

// Open MPI wants this margin to be free beyond what it takes.
constexpr std::int64_t with_margin(std::int64_t bytes) {
  return bytes + bytes / 20;
}

// MPI itself takes this memory per rank: control data of the window, and buffers for messages. The
// pages of these buffers count when they are first used (4 MiB in Open MPI).
constexpr std::int64_t kOfMpi = 5 << 20;

std::int64_t free_bytes() {
  struct statvfs info {};
  if (statvfs(kSharedMemory, &info) != 0) return INT64_MAX;
  return static_cast<std::int64_t>(info.f_bavail) * static_cast<std::int64_t>(info.f_frsize);
}

std::string mib(std::int64_t bytes) {
  return bytes < 1 << 20 ? std::to_string(bytes >> 10) + " KiB"
                         : std::to_string(bytes >> 20) + " MiB";
}

std::string mib_at_least(std::int64_t bytes) {
  return mib(bytes + (1 << 20) - 1);
}

[[noreturn]] void throw_no_memory(std::int64_t needed, const std::string& why) {
  throw EnvironmentError(
      "no shared memory for the fields (a node's ranks need " + mib_at_least(needed) +
      " together, MPI's own included; " + why + "): enlarge " + kSharedMemory +
      " (in a container, its --shm-size), use smaller fields, or use a method that needs none, "
      "such as p2p");
}

/// Holds the communicator of a node's ranks while a window is made.
struct Node {
  explicit Node(MPI_Comm parent) {
    HALOCLINE_MPI(MPI_Comm_split_type(parent, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm));
    // A failed allocation must return, so that all ranks can throw EnvironmentError.
    HALOCLINE_MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node() { MPI_Comm_free(&comm); }
  MPI_Comm comm = MPI_COMM_NULL;
};

SharedWindow::Room room_of(const Node& node, std::int64_t bytes) {
  SharedWindow::Room room{with_margin(bytes) + kOfMpi, INT64_MAX};
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &room.needed, 1, MPI_INT64_T, MPI_SUM, node.comm));
  int ranks = 1;
  HALOCLINE_MPI(MPI_Comm_size(node.comm, &ranks));
  if (ranks > 1) room.available = free_bytes();
  return room;
}

/// Asks MPI to put every rank's memory on pages of its own, so that they can be near that rank.
struct SpreadOut {
  SpreadOut() {
    HALOCLINE_MPI(MPI_Info_create(&info));
    HALOCLINE_MPI(MPI_Info_set(info, "alloc_shared_noncontig", "true"));
  }
  SpreadOut(const SpreadOut&) = delete;
  SpreadOut& operator=(const SpreadOut&) = delete;
  ~SpreadOut() { MPI_Info_free(&info); }
  MPI_Info info = MPI_INFO_NULL;
};

}  // namespace

SharedWindow::Room SharedWindow::room(MPI_Comm comm, std::int64_t bytes) {
  const Node node(comm);
  return room_of(node, bytes + kAlignment);
}

SharedWindow::SharedWindow(MPI_Comm parent, std::int64_t bytes) : bytes_(bytes) {
  const Communicator comm(parent);
  const Node node(comm.get());
  // MPI may return any address, so the memory begins at the next page.
  const std::int64_t taken = bytes + kAlignment;
  const auto room = room_of(node, taken);
  collectively(comm.get(), [&] {
    if (!room.fits())
      throw_no_memory(room.needed, std::string(kSharedMemory) + " has " + mib(room.available));
  });
  const SpreadOut info;
  void* base = nullptr;
  const int error =
      MPI_Win_allocate_shared(taken, 1, info.info, node.comm, static_cast<void*>(&base), &window_);
  try {
    collectively(comm.get(), [&] {
      if (error != MPI_SUCCESS) throw_no_memory(room.needed, "this MPI could not allocate it");
    });
  } catch (const EnvironmentError&) {  // perhaps from another node
    if (error == MPI_SUCCESS) MPI_Win_free(&window_);
    throw;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  std::int64_t skipped =
      (kAlignment - static_cast<std::int64_t>(address % kAlignment)) % kAlignment;
  data_ = static_cast<std::byte*>(base) + skipped;
  // Pages count as taken when they are touched. Touch them now, before another process takes them.
  for (std::int64_t at = 0; at < bytes; at += kAlignment) data_[at] = std::byte(0);

  int node_size = 1, rank = comm.rank();
  HALOCLINE_MPI(MPI_Comm_size(node.comm, &node_size));
  std::vector<int> ranks(static_cast<std::size_t>(node_size));
  std::vector<std::int64_t> begins(ranks.size());
  HALOCLINE_MPI(MPI_Allgather(&rank, 1, MPI_INT, ranks.data(), 1, MPI_INT, node.comm));
  HALOCLINE_MPI(MPI_Allgather(&skipped, 1, MPI_INT64_T, begins.data(), 1, MPI_INT64_T, node.comm));
  others_.resize(static_cast<std::size_t>(comm.size()));
  for (int i = 0; i < node_size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    MPI_Aint size = 0;
    int unit = 1;
    void* begin = nullptr;
    HALOCLINE_MPI(MPI_Win_shared_query(window_, i, &size, &unit, static_cast<void*>(&begin)));
    others_[static_cast<std::size_t>(ranks[at])] = static_cast<std::byte*>(begin) + begins[at];
  }
  // Loads and stores need an epoch; sync() orders them.
  HALOCLINE_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, window_));
  HALOCLINE_MPI(MPI_Comm_group(parent, &group_));
}

SharedWindow::~SharedWindow() {
  if (mpi_is_over()) return;
  MPI_Group_free(&group_);
  if (std::uncaught_exceptions() > 0) return;
  MPI_Win_unlock_all(window_);
  MPI_Win_free(&window_);
}

std::optional<std::int64_t> SharedWindow::offset_of(const void* address) const {
  const auto offset = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address) -
                                                reinterpret_cast<std::uintptr_t>(data_));
  if (offset < 0 || offset >= bytes_) return std::nullopt;
  return offset;
}

bool SharedWindow::has_ranks_of(MPI_Comm comm) const {
  MPI_Group other = MPI_GROUP_NULL;
  int difference = MPI_UNEQUAL;
  HALOCLINE_MPI(MPI_Comm_group(comm, &other));
  const int error = MPI_Group_compare(group_, other, &difference);
  MPI_Group_free(&other);
  HALOCLINE_MPI(error);
  return difference == MPI_IDENT;
}

void SharedWindow::sync() const {
  HALOCLINE_MPI(MPI_Win_sync(window_));
}

}  // namespace halocline::comm
