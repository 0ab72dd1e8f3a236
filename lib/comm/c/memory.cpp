// SPDX-License-Identifier: BSD-3-Clause
#include "comm/c/memory.hpp"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>

#include "comm/c/common.hpp"
#include "comm/mpi/communicator.hpp"

namespace halocline::c {

namespace {

// Holds one allocation: in a shared window, or ordinary memory where there is no room for one.
struct Allocation {
  std::shared_ptr<const comm::SharedWindow> window;
  std::shared_ptr<const comm::PagedMemory> ordinary;

  void* data() const { return window != nullptr ? window->data() : ordinary->data(); }
};

struct Allocations {
  std::mutex mutex;
  std::vector<Allocation> list;  // in the order of their allocation
};

// Is never destroyed: programs may forget to free, and MPI may be over then.
Allocations& allocations() {
  static auto* const all = new Allocations;
  return *all;
}

Allocation allocate(MPI_Comm comm, std::int64_t bytes) {
  Allocation out;
  try {
    out.window = std::make_shared<const comm::SharedWindow>(comm, bytes);
    return out;
  } catch (const MpiError&) {
    throw;  // of this rank alone
  } catch (const EnvironmentError&) {
    // Thrown on all ranks: a node cannot share that much.
  }
  comm::collectively(comm,
                     [&] { out.ordinary = std::make_shared<const comm::PagedMemory>(bytes); });
  return out;
}

}  // namespace

std::vector<std::shared_ptr<const comm::SharedWindow>> windows_of(MPI_Comm comm) {
  auto& all = allocations();
  const std::lock_guard lock(all.mutex);
  std::vector<std::shared_ptr<const comm::SharedWindow>> out;
  for (const auto& allocation : all.list)
    if (allocation.window != nullptr && allocation.window->has_ranks_of(comm))
      out.push_back(allocation.window);
  return out;
}

std::vector<std::shared_ptr<const comm::PagedMemory>> ordinary_memory() {
  auto& all = allocations();
  const std::lock_guard lock(all.mutex);
  std::vector<std::shared_ptr<const comm::PagedMemory>> out;
  for (const auto& allocation : all.list)
    if (allocation.ordinary != nullptr) out.push_back(allocation.ordinary);
  return out;
}

}  // namespace halocline::c

using namespace halocline;
using namespace halocline::c;

int halocline_alloc(MPI_Comm comm, std::int64_t bytes, void** memory) {
  return guarded([&] {
    require_communicator(comm);
    comm::collectively(comm, [&] {
      require(memory != nullptr, "`memory` is NULL: give the address of a pointer");
      *memory = nullptr;
      require(bytes >= 0, "`bytes` is negative: give 0 or more");
      constexpr std::int64_t kMost = std::int64_t{1} << 47;
      require(bytes <= kMost, "`bytes` is more than a process has addresses for: give fewer");
    });
    auto made = allocate(comm, std::max<std::int64_t>(bytes, 1));
    auto& all = allocations();
    const std::lock_guard lock(all.mutex);
    *memory = made.data();
    all.list.push_back(std::move(made));
  });
}

int halocline_free(void** memory) {
  return guarded([&] {
    require_mpi();
    require(memory != nullptr, "`memory` is NULL: give the address of a pointer");
    if (*memory == nullptr) return;
    Allocation freed;
    auto& all = allocations();
    {
      const std::lock_guard lock(all.mutex);
      const auto found = std::find_if(all.list.begin(), all.list.end(),
                                      [&](const auto& one) { return one.data() == *memory; });
      require(found != all.list.end(),
              "this memory is not of halocline_alloc(), or is freed already: free it once");
      freed = std::move(*found);
      all.list.erase(found);
    }
    *memory = nullptr;
  });
}
