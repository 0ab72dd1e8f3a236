// SPDX-License-Identifier: BSD-3-Clause
// Finds out if the MPI of this run takes pointers to device memory. The build cannot know this.
#pragma once

#include <optional>
#include <string>

#include "dtype/device/device.hpp"

namespace halocline::comm {

struct GpuAwareness {
  bool aware = false;
  std::string source;  ///< origin of this answer, for people
};

/// Reads HALOCLINE_GPU_AWARE_MPI: "yes" or "no" overrules the MPI. Local.
/// \return true if MPI takes device memory; nullopt for "ask", or if the variable is not set
/// \throws ConfigError if the variable has another value
std::optional<bool> gpu_awareness_by_environment();

/// Asks the MPI library that is loaded what it says of itself. Local.
///
/// MPIX_GPU_query_support (MPICH 4, Cray MPICH) goes before MPIX_Query_cuda_support (Open MPI,
/// MPICH). An MPI that has neither is not aware. Ask only where there is a device: in MPICH before
/// version 4, a library that was built without devices stops the program.
GpuAwareness ask_mpi_for_gpu_awareness();

/// Finds out if messages may be in memory of `device`. Asks the MPI and, if it says yes, sends a
/// message from the rank to itself. Returns yes for an emulated device, since its memory is the
/// host's. Local. Done once in a process: this takes milliseconds and synchronises the device. MPI
/// must be initialised.
GpuAwareness find_gpu_awareness(dtype::Device& device);

/// Returns what gpu_awareness_by_environment() says, else find_gpu_awareness().
/// \throws ConfigError as gpu_awareness_by_environment() does
GpuAwareness probe_gpu_awareness(dtype::Device& device);

}  // namespace halocline::comm
