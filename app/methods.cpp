// SPDX-License-Identifier: BSD-3-Clause
#include "methods.hpp"

#include "comm/mpi/communicator.hpp"
#include "support/error.hpp"
#include "support/mpi_check.hpp"

namespace halocline::app {

dtype::ResourceCache* device_resources(const Config& config) {
  if (config.memory == Memory::host) return nullptr;
  if (dtype::current_device() == nullptr)
    throw ConfigError("no device for memory = \"device\" (" + dtype::why_no_device() +
                      "): use memory = \"host\", or a machine and a build with CUDA");
  return &dtype::current_resources();
}

std::optional<bool> gpu_awareness_by_flag(const Config& config) {
  if (config.gpu_aware_mpi == GpuAwareMpi::ask) return std::nullopt;
  return config.gpu_aware_mpi == GpuAwareMpi::yes;
}

comm::GpuAwareness gpu_awareness(const Config& config, dtype::Device& device) {
  if (const auto aware = gpu_awareness_by_flag(config))
    return {*aware, std::string("gpu-aware-mpi is ") + (*aware ? "yes" : "no")};
  return comm::probe_gpu_awareness(device);
}

std::vector<comm::Method> methods_on_host() {
  std::vector<comm::Method> out;
  for (const auto exchange : comm::all_exchanges())
    if (comm::why_not_available(exchange).empty()) out.emplace_back(exchange);
  return out;
}

Methods methods_on_device(const comm::GpuAwareness& awareness, const comm::MemorySharing& sharing) {
  using comm::Exchange;
  using dtype::Transfer;
  Methods out;
  std::string unaware;
  for (const comm::Method& method :
       {comm::Method(Exchange::alltoallv, Transfer::device),
        comm::Method(Exchange::alltoallv, Transfer::one_shot),
        comm::Method(Exchange::alltoallv, Transfer::staged), comm::Method(Exchange::shared),
        comm::Method(Exchange::vendor_pack), comm::Method(Exchange::vendor_alltoallw)}) {
    const bool mpi_sees_it =
        comm::is_vendor(method.exchange) || method.transfer == Transfer::device;
    const bool is_shared = method.exchange == Exchange::shared;
    if (is_shared ? sharing.possible : awareness.aware || !mpi_sees_it)
      out.list.push_back(method);
    else if (!is_shared)
      unaware += (unaware.empty() ? "" : ", ") + comm::name(method);
  }
  if (!sharing.possible) out.left_out.push_back("left out: shared, since " + sharing.why_not);
  if (!unaware.empty())
    out.left_out.push_back("left out: " + unaware +
                           ", since this MPI does not take device memory (" + awareness.source +
                           ")");
  return out;
}

comm::Method method_to_run(const Config& config) {
  return config.methods.empty() ? comm::Method(comm::Exchange::alltoallv) : config.methods.front();
}

Methods methods_to_compare(const Config& config, const comm::NodeHierarchy& nodes, MPI_Comm comm) {
  if (!config.methods.empty()) return {config.methods, {}};
  if (config.memory == Memory::host) {
    Methods out{methods_on_host(), {}};
    for (const auto exchange : comm::all_exchanges())
      if (const auto why = comm::why_not_available(exchange); !why.empty())
        out.left_out.push_back("left out: " + std::string(comm::name(exchange)) + ", since " + why);
    return out;
  }
  comm::GpuAwareness awareness{true, ""};  // a dry run tries nothing and counts every method that
                                           // may be possible
  comm::collectively(comm, [&] {
    if (!config.dry_run) awareness = gpu_awareness(config, device_resources(config)->device());
  });
  int aware = awareness.aware ? 1 : 0;
  HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &aware, 1, MPI_INT, MPI_MIN, comm));
  if (awareness.aware && aware == 0) awareness = {false, "on some ranks"};
  comm::MemorySharing sharing{true, ""};
  if (!config.dry_run)
    sharing = comm::probe_memory_sharing(device_resources(config)->device(), comm, &nodes);
  return methods_on_device(awareness, sharing);
}

}  // namespace halocline::app
