// SPDX-License-Identifier: BSD-3-Clause
// Chooses the kind of shared memory, after a check for room.
#include "comm/node/shared_window.hpp"

#include <sys/statvfs.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "comm/mpi/communicator.hpp"
#include "comm/node/node_memory.hpp"
#include "support/machine.hpp"
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

[[noreturn]] void throw_no_room(std::int64_t needed, const std::string& why) {
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

  std::int64_t sum(std::int64_t value) const {
    HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT64_T, MPI_SUM, comm));
    return value;
  }
  int ranks() const {
    int out = 1;
    HALOCLINE_MPI(MPI_Comm_size(comm, &out));
    return out;
  }
  MPI_Comm comm = MPI_COMM_NULL;
};

// Returns the room for a window of MPI.
SharedWindow::Room room_of_mpi(const Node& node, std::int64_t bytes) {
  return {node.sum(with_margin(bytes + SharedWindow::kAlignment) + kOfMpi),
          node.ranks() > 1 ? free_bytes() : INT64_MAX};
}

// Returns the addresses that the windows of a node take, which are `needed` as files. A window of
// MPI may hang if a rank cannot map it. A mapping takes one page more for a while.
std::int64_t addresses_for(std::int64_t needed, const SharedWindow::Room& of_mpi,
                           const SharedWindow::Options& options) {
  return std::max(needed + PagedMemory::kHugePage, of_mpi.needed) +
         static_cast<std::int64_t>(kAddressesOfMpi) + options.beside;
}

// Returns a number that no other window of these ranks has. Threads may make windows at the same
// time, so rank 0 alone counts. Collective.
std::int64_t next_number(MPI_Comm comm) {
  static std::atomic<std::int64_t> last{0};
  std::int64_t number = ++last;
  HALOCLINE_MPI(MPI_Bcast(&number, 1, MPI_INT64_T, 0, comm));
  return number;
}

}  // namespace

SharedWindow::Room SharedWindow::room(MPI_Comm comm, std::int64_t bytes) {
  const Node node(comm);
  std::string why;
  // A file without a name takes what other memory takes, so it has no limit of its own.
  if (detail::make_memory_file(node.comm, 1, Pages::small, why) != nullptr)
    return {node.sum(bytes), INT64_MAX};
  return room_of_mpi(node, bytes);
}

std::int64_t SharedWindow::addresses(MPI_Comm comm, std::int64_t bytes, Options options) {
  const Node node(comm);
  const auto needed = node.sum(PagedMemory::size(bytes, options.pages));
  return addresses_for(needed, room_of_mpi(node, bytes), options);
}

SharedWindow::SharedWindow(MPI_Comm parent, std::int64_t bytes, Options options) : bytes_(bytes) {
  const Communicator comm(parent);
  const Node node(comm.get());
  const auto needed = node.sum(PagedMemory::size(bytes, options.pages));
  const auto room = room_of_mpi(node, bytes);
  collectively(comm.get(), [&] {
    const auto available = available_memory();
    if (static_cast<double>(needed) > available)
      throw EnvironmentError("no shared memory for the fields (a node's ranks need " +
                             mib_at_least(needed) + " together; the node has " +
                             mib(static_cast<std::int64_t>(available)) +
                             "): use smaller fields, or fewer ranks on a node");
    const auto mapped = addresses_for(needed, room, options);
    const auto addresses = addresses_left();
    if (static_cast<double>(mapped) > addresses)
      throw EnvironmentError("no addresses for the shared memory of a node (" +
                             mib_at_least(mapped) + "; this process has " +
                             mib(static_cast<std::int64_t>(addresses)) +
                             "): raise ulimit -v, or use smaller fields");
  });
  if (!options.only_mpi)
    memory_ = detail::make_memory_file(node.comm, bytes, options.pages, why_mpi_);
  kind_ = memory_ == nullptr ? Kind::mpi_window : Kind::memory_file;
  collectively(comm.get(), [&] {
    if (memory_ == nullptr && !room.fits())
      throw_no_room(room.needed, std::string(kSharedMemory) + " has " + mib(room.available));
  });
  if (memory_ == nullptr) memory_ = detail::make_mpi_window(node.comm, bytes);
  try {
    collectively(comm.get(), [&] {
      if (memory_ == nullptr) throw_no_room(room.needed, "this MPI could not allocate it");
    });
  } catch (const EnvironmentError&) {  // perhaps from another node
    memory_.reset();
    throw;
  }

  number_ = next_number(comm.get());
  const int ranks = node.ranks(), rank = comm.rank();
  std::vector<int> numbers(static_cast<std::size_t>(ranks));
  HALOCLINE_MPI(MPI_Allgather(&rank, 1, MPI_INT, numbers.data(), 1, MPI_INT, node.comm));
  others_.resize(static_cast<std::size_t>(comm.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    others_[static_cast<std::size_t>(numbers[i])] = memory_->begins[i];
  data_ = others_[static_cast<std::size_t>(rank)];
  HALOCLINE_MPI(MPI_Comm_group(parent, &group_));
}

SharedWindow::~SharedWindow() {
  if (!mpi_is_over()) MPI_Group_free(&group_);
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
  memory_->sync();
}

}  // namespace halocline::comm
