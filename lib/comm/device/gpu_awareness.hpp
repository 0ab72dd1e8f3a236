// SPDX-License-Identifier: BSD-3-Clause
// Whether the MPI of this run takes pointers to device memory: a fact of the run, not of the build.
#pragma once

#include <string>

#include "dtype/device/device.hpp"

namespace halocline::comm {

struct GpuAwareness {
  bool aware = false;
  std::string source;  ///< how that is known, for people
};

/// What the MPI says of itself, by MPIX_Query_cuda_support (Open MPI, MPICH) of whichever library
/// is loaded. One that says nothing is not aware. Local.
GpuAwareness ask_mpi_for_gpu_awareness();

/// Whether messages may stand in memory of `device`: what the MPI says, and where that is yes, a
/// message of the rank to itself. An emulated device's memory is the host's: yes. Local; tried
/// once in a process, which takes milliseconds and synchronises the device. MPI must be
/// initialised.
GpuAwareness probe_gpu_awareness(dtype::Device& device);

}  // namespace halocline::comm
