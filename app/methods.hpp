// SPDX-License-Identifier: BSD-3-Clause
// The device that a configuration asks for, and the methods that are possible there.
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

/// Of the device that config.memory asks for, nullptr for `host`. Throws ConfigError if there is
/// none.
dtype::ResourceCache* device_resources(const Config& config);

/// Returns what --gpu-aware-mpi says of the MPI; nothing for `ask`.
std::optional<bool> gpu_awareness_by_flag(const Config& config);

/// Returns whether messages may stand in memory of `device`: what the flag says, else
/// comm::probe_gpu_awareness(). Local. \throws ConfigError as that function does
comm::GpuAwareness gpu_awareness(const Config& config, dtype::Device& device);

/// What is exchanged by, and why not by more, if so.
struct Methods {
  std::vector<comm::Method> list;
  std::vector<std::string> left_out;  ///< a sentence each
};

/// For fields in the memory of the host: all that this MPI has.
std::vector<comm::Method> methods_on_host();

/// For fields in the memory of a device: all transfers of ours, copies between the ranks' devices,
/// and the MPI's own handling, as far as they are possible with an MPI of that awareness and with
/// devices of which that is known.
Methods methods_on_device(const comm::GpuAwareness& awareness, const comm::MemorySharing& sharing);

/// The method of `run`: the first that the user named, else alltoallv.
comm::Method method_to_run(const Config& config);

/// config.methods, or what is there to compare on these nodes if the user named none: on the host,
/// all; whether there is memory that ranks can share turns out later. Collective.
Methods methods_to_compare(const Config& config, const comm::NodeHierarchy& nodes, MPI_Comm comm);

}  // namespace halocline::app
