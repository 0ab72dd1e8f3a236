// SPDX-License-Identifier: BSD-3-Clause
// Shares memory between the ranks of a node by files without names.
//
// MPI's own windows lie in /dev/shm, which is of limited size and has small pages. A file without a
// name has neither limit, and its memory goes with the last process. Ranks open the files of their
// partners through /proc, which the kernel permits to processes of one user.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "comm/node/node_memory.hpp"
#include "support/error.hpp"
#include "support/mpi_check.hpp"

namespace halocline::comm::detail {

namespace {

std::string reason_of(const std::string& what) {
  return what + ": " + std::generic_category().message(errno);
}

// Owns a descriptor of a file.
class File {
 public:
  explicit File(int descriptor = -1) : descriptor_(descriptor) {}
  File(const File&) = delete;
  File& operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

// Tells other ranks of the node how to open the file of a rank.
struct Name {
  std::int64_t process, descriptor;
  std::uint64_t device, inode;  // no other file has both, whatever /proc shows there
  std::int64_t bytes;
};

class MemoryFile final : public NodeMemory {
 public:
  // Makes the file of this rank. Throws EnvironmentError.
  Name make(std::int64_t bytes, Pages pages) {
    rlimit most{};
    const auto size = PagedMemory::size(std::max<std::int64_t>(bytes, 1), pages);
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && static_cast<rlim_t>(size) > most.rlim_cur)
      throw EnvironmentError("files may have " + std::to_string(most.rlim_cur) +
                             " bytes at most (ulimit -f)");
    file_ = File(memfd_create("halocline", MFD_CLOEXEC));
    struct stat status {};
    if (file_.get() < 0 || ftruncate(file_.get(), size) != 0 || fstat(file_.get(), &status) != 0)
      throw EnvironmentError(reason_of("memfd_create"));
    own_ = PagedMemory(size, pages, file_.get());
    own_.touch();
    return {getpid(), file_.get(), status.st_dev, status.st_ino, size};
  }

  // Maps the files of all ranks, this one's included. Throws EnvironmentError.
  void open(const std::vector<Name>& names, int rank, Pages pages) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (static_cast<int>(i) == rank) {
        begins.push_back(own_.data());
        continue;
      }
      const auto& name = names[i];
      const auto path =
          "/proc/" + std::to_string(name.process) + "/fd/" + std::to_string(name.descriptor);
      const File file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
      struct stat status {};
      if (file.get() < 0 || fstat(file.get(), &status) != 0)
        throw EnvironmentError(reason_of(path));
      if (status.st_dev != name.device || status.st_ino != name.inode)
        throw EnvironmentError(path + " is another file: ranks see other processes");
      begins.push_back(others_.emplace_back(name.bytes, pages, file.get()).data());
    }
  }
  // Lets the memory go with its last process. All ranks have opened the file.
  void forget_file() { file_ = File(); }

  void sync() const override { std::atomic_thread_fence(std::memory_order_seq_cst); }

 private:
  File file_;
  PagedMemory own_;
  std::vector<PagedMemory> others_;
};

// Returns the problem of the lowest rank that has one; empty if there is none. Collective.
std::string first_problem(MPI_Comm node, const std::string& mine) {
  std::array<char, 200> text{};
  mine.copy(text.data(), text.size() - 1);
  int size = 1;
  HALOCLINE_MPI(MPI_Comm_size(node, &size));
  std::vector<char> all(text.size() * static_cast<std::size_t>(size));
  HALOCLINE_MPI(MPI_Allgather(text.data(), static_cast<int>(text.size()), MPI_CHAR, all.data(),
                              static_cast<int>(text.size()), MPI_CHAR, node));
  for (std::size_t at = 0; at < all.size(); at += text.size())
    if (all[at] != '\0') return &all[at];
  return "";
}

// Returns what `body` complains about; empty if it does not.
template <class Body>
std::string problem_of(Body body) {
  try {
    body();
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

std::unique_ptr<NodeMemory> make_memory_file(MPI_Comm node, std::int64_t bytes, Pages pages,
                                             std::string& why) {
  auto out = std::make_unique<MemoryFile>();
  int rank = 0, size = 1;
  HALOCLINE_MPI(MPI_Comm_rank(node, &rank));
  HALOCLINE_MPI(MPI_Comm_size(node, &size));
  Name mine{};
  why = first_problem(node, problem_of([&] { mine = out->make(bytes, pages); }));
  if (!why.empty()) return nullptr;
  std::vector<Name> names(static_cast<std::size_t>(size));
  HALOCLINE_MPI(
      MPI_Allgather(&mine, sizeof mine, MPI_BYTE, names.data(), sizeof mine, MPI_BYTE, node));
  why = first_problem(node, problem_of([&] { out->open(names, rank, pages); }));
  if (!why.empty()) return nullptr;
  out->forget_file();
  return out;
}

}  // namespace halocline::comm::detail
