// SPDX-License-Identifier: BSD-3-Clause
// Allocates MPI-3 shared windows, and queries the partners' addresses.
#include <exception>

#include "comm/mpi/communicator.hpp"
#include "comm/node/node_memory.hpp"
#include "support/mpi_check.hpp"

namespace halocline::comm::detail {

namespace {

constexpr std::int64_t kPage = 4096;

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

class MpiWindow final : public NodeMemory {
 public:
  explicit MpiWindow(MPI_Win window) : window_(window) {}
  MpiWindow(const MpiWindow&) = delete;
  MpiWindow& operator=(const MpiWindow&) = delete;
  ~MpiWindow() override {
    if (mpi_is_over() || std::uncaught_exceptions() > 0) return;
    if (is_locked_) MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }

  // Touches `bytes` bytes of this rank's memory, and finds the memory of all ranks.
  void open(MPI_Comm node, void* base, std::int64_t bytes) {
    // MPI may return any address, so the memory begins at the next page.
    const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(base));
    const std::int64_t skipped = (kPage - address % kPage) % kPage;
    auto* const data = static_cast<std::byte*>(base) + skipped;
    // Pages count as taken when they are touched. Touch them now, before another process takes
    // them.
    for (std::int64_t at = 0; at < bytes; at += kPage) data[at] = std::byte(0);
    int ranks = 1;
    HALOCLINE_MPI(MPI_Comm_size(node, &ranks));
    std::vector<std::int64_t> all(static_cast<std::size_t>(ranks));
    HALOCLINE_MPI(MPI_Allgather(&skipped, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T, node));
    for (int rank = 0; rank < ranks; ++rank) {
      MPI_Aint size = 0;
      int unit = 1;
      void* begin = nullptr;
      HALOCLINE_MPI(MPI_Win_shared_query(window_, rank, &size, &unit, static_cast<void*>(&begin)));
      begins.push_back(static_cast<std::byte*>(begin) + all[static_cast<std::size_t>(rank)]);
    }
    // Loads and stores need an epoch; sync() orders them.
    HALOCLINE_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, window_));
    is_locked_ = true;
  }

  void sync() const override { HALOCLINE_MPI(MPI_Win_sync(window_)); }

 private:
  MPI_Win window_;
  bool is_locked_ = false;
};

}  // namespace

std::unique_ptr<NodeMemory> make_mpi_window(MPI_Comm node, std::int64_t bytes) {
  const SpreadOut info;
  void* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  if (MPI_Win_allocate_shared(bytes + kPage, 1, info.info, node, static_cast<void*>(&base),
                              &window) != MPI_SUCCESS)
    return nullptr;
  auto out = std::make_unique<MpiWindow>(window);
  out->open(node, base, bytes);
  return out;
}

}  // namespace halocline::comm::detail
