// SPDX-License-Identifier: BSD-3-Clause
// Asks the environment, the MPI and a test message if MPI takes device memory.
#include "comm/device/gpu_awareness.hpp"

#include <dlfcn.h>
#include <mpi.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "comm/mpi/communicator.hpp"
#include "support/error.hpp"
#include "support/mpi_check.hpp"

namespace halocline::comm {

namespace {

constexpr const char* kVariable = "HALOCLINE_GPU_AWARE_MPI";
constexpr const char* kQuery = "MPIX_GPU_query_support";
constexpr const char* kOlderQuery = "MPIX_Query_cuda_support";

// MPIX_GPU_query_support knows CUDA by this number.
#ifdef MPIX_GPU_SUPPORT_CUDA
constexpr int kCuda = MPIX_GPU_SUPPORT_CUDA;
#else
constexpr int kCuda = 0;  // the value of MPICH and of MPIs derived from it
#endif

// Looked up at run time, since the program may run with another MPI than it was built with.
template <class Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

GpuAwareness answer(const char* query, bool aware) {
  return {aware, std::string(query) + ": " + (aware ? "1" : "0")};
}

}  // namespace

std::optional<bool> gpu_awareness_by_environment() {
  const char* const text = std::getenv(kVariable);
  const std::string_view word = text == nullptr ? "" : text;
  if (word.empty() || word == "ask") return std::nullopt;
  if (word == "yes" || word == "no") return word == "yes";
  throw ConfigError(std::string(kVariable) + " cannot be used ('" + text +
                    "', in the environment): set it to yes, no or ask");
}

GpuAwareness ask_mpi_for_gpu_awareness() {
  int supported = 0;
  if (const auto query = find<int(int, int*)>(kQuery);
      query != nullptr && query(kCuda, &supported) == MPI_SUCCESS)
    return answer(kQuery, supported == 1);
  if (const auto query = find<int()>(kOlderQuery); query != nullptr)
    return answer(kOlderQuery, query() == 1);
  return {false, std::string("this MPI has neither ") + kQuery + " nor " + kOlderQuery};
}

namespace {

// Tells if a message from memory of the device to memory of the device arrives intact.
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
  const Communicator self(MPI_COMM_SELF);  // no other receive can match here
  const int count = static_cast<int>(sent.size());
  HALOCLINE_MPI(MPI_Sendrecv(from.get(), count, MPI_INT, 0, 0, to.get(), count, MPI_INT, 0, 0,
                             self.get(), MPI_STATUS_IGNORE));
  device.copy(received.data(), to.get(), kBytes, nullptr);
  device.synchronize(nullptr);
  return received == sent;
}

}  // namespace

GpuAwareness find_gpu_awareness(dtype::Device& device) {
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

GpuAwareness probe_gpu_awareness(dtype::Device& device) {
  if (const auto aware = gpu_awareness_by_environment())
    return {*aware, std::string(kVariable) + " is " + (*aware ? "yes" : "no")};
  return find_gpu_awareness(device);
}

}  // namespace halocline::comm
