// SPDX-License-Identifier: BSD-3-Clause
// Finds out if ranks reach each other's device memory.
//
// Best peer: Open MPI tries CUDA IPC message by message and falls back silently. Here the answer is
// known, and reported, before an exchange is planned.
#pragma once

#include <mpi.h>

#include <string>

#include "comm/node/node_hierarchy.hpp"
#include "dtype/device/device.hpp"

namespace halocline::comm {

struct MemorySharing {
  bool possible = false;
  std::string why_not;  ///< empty if it is possible
};

/// Tells if every rank of `comm` can open the device memory of all ranks of its node, by a test.
/// `nodes`: nullptr for the real ones. The same on all ranks. Collective. Throws EnvironmentError
/// if there is no memory left.
MemorySharing probe_memory_sharing(dtype::Device& device, MPI_Comm comm,
                                   const NodeHierarchy* nodes = nullptr);

}  // namespace halocline::comm
