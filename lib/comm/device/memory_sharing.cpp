// SPDX-License-Identifier: BSD-3-Clause
// Tries if ranks of a node can open the device memory of each other.
#include "comm/device/memory_sharing.hpp"

#include <memory>
#include <vector>

#include "comm/mpi/communicator.hpp"
#include "support/mpi_check.hpp"

namespace halocline::comm {

namespace {

int number_at(dtype::Device& device, const void* address) {
  int out = -1;
  device.copy(&out, address, sizeof(out), nullptr);
  device.synchronize(nullptr);
  return out;
}

}  // namespace

MemorySharing probe_memory_sharing(dtype::Device& device, MPI_Comm comm,
                                   const NodeHierarchy* nodes) {
  using dtype::MemoryKind;
  const auto all_ranks = nodes != nullptr ? *nodes : NodeHierarchy(comm);
  constexpr std::size_t kBytes = 256;
  const auto release = [&](void* memory) { device.release(MemoryKind::device, memory); };
  std::unique_ptr<void, decltype(release)> memory(nullptr, release);
  collectively(comm, [&] { memory.reset(device.allocate(MemoryKind::device, kBytes)); });
  const int rank = all_ranks.rank();
  device.copy(memory.get(), &rank, sizeof(rank), nullptr);
  device.synchronize(nullptr);
  const auto mine = device.share(memory.get());
  int possible = mine ? 1 : 0;
  std::vector<dtype::SharedMemory> all(static_cast<std::size_t>(all_ranks.ranks()));
  if (mine) all[static_cast<std::size_t>(rank)] = *mine;
  constexpr int kShareBytes = sizeof(dtype::SharedMemory);
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &possible, 1, MPI_INT, MPI_MIN, comm));
  if (possible == 0) return {false, "memory of this device cannot be shared between processes"};
  HALOCLINE_MPI(
      MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all.data(), kShareBytes, MPI_BYTE, comm));
  for (int r = 0; r < static_cast<int>(all.size()) && possible == 1; ++r) {
    if (r == rank || !all_ranks.same_node(r)) continue;
    const auto& shared = all[static_cast<std::size_t>(r)];
    auto* const opened = static_cast<std::byte*>(device.open(shared));
    possible = opened != nullptr && number_at(device, opened + shared.offset) == r ? 1 : 0;
    if (opened != nullptr) device.close(opened);
  }
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &possible, 1, MPI_INT, MPI_MIN, comm));
  if (possible == 0) return {false, "a process cannot open the memory of another one's device"};
  return {true, ""};
}

}  // namespace halocline::comm
