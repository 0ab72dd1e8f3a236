// SPDX-License-Identifier: BSD-3-Clause
#include "comm/device/gpu_awareness.hpp"

#include <dlfcn.h>
#include <mpi.h>

#include <array>
#include <memory>

#include "dtype/support/mpi_check.hpp"

namespace halocline::comm {

GpuAwareness ask_mpi_for_gpu_awareness() {
  // Looked up while running: the program may run with another MPI than it was built with.
  const auto query = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"));
  if (query == nullptr) return {false, "this MPI has no MPIX_Query_cuda_support"};
  const bool aware = query() == 1;
  return {aware, std::string("MPIX_Query_cuda_support: ") + (aware ? "1" : "0")};
}

GpuAwareness probe_gpu_awareness(dtype::Device& device) {
  if (device.properties().emulated) return {true, "the device is emulated"};
  auto answer = ask_mpi_for_gpu_awareness();
  if (!answer.aware) return answer;
  using dtype::MemoryKind;
  std::array<int, 64> sent{}, received{};
  sent.fill(42);
  constexpr auto kBytes = sizeof(sent);
  const auto release = [&](void* memory) { device.release(MemoryKind::device, memory); };
  const auto memory = [&] {
    return std::unique_ptr<void, decltype(release)>(device.allocate(MemoryKind::device, kBytes),
                                                    release);
  };
  const auto from = memory(), to = memory();
  device.copy(from.get(), sent.data(), kBytes, nullptr);
  device.synchronize(nullptr);
  const int count = static_cast<int>(sent.size());
  HALOCLINE_MPI(MPI_Sendrecv(from.get(), count, MPI_INT, 0, 0, to.get(), count, MPI_INT, 0, 0,
                             MPI_COMM_SELF, MPI_STATUS_IGNORE));
  device.copy(received.data(), to.get(), kBytes, nullptr);
  device.synchronize(nullptr);
  if (received != sent)
    return {false, answer.source + ", but a message in device memory arrived wrong"};
  answer.source += ", and a message in device memory arrived";
  return answer;
}

}  // namespace halocline::comm
