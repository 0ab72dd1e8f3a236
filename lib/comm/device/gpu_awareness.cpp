// SPDX-License-Identifier: BSD-3-Clause
#include "comm/device/gpu_awareness.hpp"

#include <dlfcn.h>
#include <mpi.h>

#include <array>
#include <memory>

#include "comm/mpi/communicator.hpp"
#include "dtype/support/mpi_check.hpp"

namespace halocline::comm {

GpuAwareness ask_mpi_for_gpu_awareness() {
  // Looked up while running: the program may run with another MPI than it was built with.
  const auto query = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"));
  if (query == nullptr) return {false, "this MPI has no MPIX_Query_cuda_support"};
  const bool aware = query() == 1;
  return {aware, std::string("MPIX_Query_cuda_support: ") + (aware ? "1" : "0")};
}

namespace {

// A message from memory of the device to another.
bool carries_device_memory(dtype::Device& device) {
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
  const Communicator self(MPI_COMM_SELF);  // where nobody else receives
  const int count = static_cast<int>(sent.size());
  HALOCLINE_MPI(MPI_Sendrecv(from.get(), count, MPI_INT, 0, 0, to.get(), count, MPI_INT, 0, 0,
                             self.get(), MPI_STATUS_IGNORE));
  device.copy(received.data(), to.get(), kBytes, nullptr);
  device.synchronize(nullptr);
  return received == sent;
}

}  // namespace

GpuAwareness probe_gpu_awareness(dtype::Device& device) {
  if (device.properties().emulated) return {true, "the device is emulated"};
  // A process has one real device. Never destroyed: plans may be used until the process ends.
  static const auto& known = *new auto([&]() -> GpuAwareness {
    const auto said = ask_mpi_for_gpu_awareness();
    if (!said.aware) return said;
    if (carries_device_memory(device))
      return {true, said.source + ", and a message in device memory arrived"};
    return {false, said.source + ", but a message in device memory arrived wrong"};
  }());
  return known;
}

}  // namespace halocline::comm
