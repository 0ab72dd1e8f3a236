// SPDX-License-Identifier: BSD-3-Clause
// Finds the device that a configuration asks for, and the methods that are possible there.
#pragma once

#include <mpi.h>

#include <optional>
#include <string>
#include <vector>

#include "comm/device/gpu_awareness.hpp"
#include "comm/device/memory_sharing.hpp"
#include "config.hpp"
#include "dtype/device/resource_cache.hpp"

namespace halocline::app {

/// Returns the resources of the device that config.memory asks for, nullptr for `host`.
/// \throws ConfigError if there is no device.
dtype::ResourceCache* device_resources(const Config& config);

/// Returns the statement of --gpu-aware-mpi about the MPI; nullopt for `ask`.
std::optional<bool> gpu_awareness_by_flag(const Config& config);

/// Tells if MPI takes messages in memory of `device`: the statement of the flag, else
/// comm::probe_gpu_awareness(). Local.
/// \throws ConfigError under the conditions of that function.
comm::GpuAwareness gpu_awareness(const Config& config, dtype::Device& device);

/// Holds the methods to compare, and the reasons why some are left out.
struct Methods {
  std::vector<comm::Method> list;
  std::vector<std::string> left_out;  ///< a sentence for each method that is left out
};

/// Returns the methods for fields in host memory: all that this MPI has.
std::vector<comm::Method> methods_on_host();

/// Returns the methods for fields in device memory, as far as `awareness` and `sharing` allow them.
/// They are all transfers of ours, copies between the ranks' devices, and the MPI's own handling.
Methods methods_on_device(const comm::GpuAwareness& awareness, const comm::MemorySharing& sharing);

/// Returns the method of `run`: the first that the user named, else alltoallv.
comm::Method method_to_run(const Config& config);

/// Returns config.methods; if the user named none, the methods that are possible on these nodes. On
/// the host these are all methods; the command finds out later if ranks can share memory.
/// Collective.
Methods methods_to_compare(const Config& config, const comm::NodeHierarchy& nodes, MPI_Comm comm);

}  // namespace halocline::app
