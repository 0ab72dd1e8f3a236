// SPDX-License-Identifier: BSD-3-Clause
// Whether ranks reach each other's device memory.
//
// Best peer: Open MPI tries CUDA IPC message by message and falls back silently; here the answer is
// known, and said, before an exchange is planned.
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

/// Whether every rank of `comm` can open memory that the others of its node allocate on their
/// devices: it is opened for a try. `nodes`: nullptr for the real ones. The same on all ranks.
/// Collective; throws EnvironmentError if there is no memory left.
MemorySharing probe_memory_sharing(dtype::Device& device, MPI_Comm comm,
                                   const NodeHierarchy* nodes = nullptr);

}  // namespace halocline::comm
