// SPDX-License-Identifier: BSD-3-Clause
// Who owns which points, from the configuration and the number of ranks.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "comm/halo/decomposition.hpp"
#include "comm/halo/halo_spec.hpp"
#include "comm/node/node_hierarchy.hpp"
#include "config.hpp"
#include "dtype/device/device.hpp"

namespace halocline::app {

/// The nodes as the configuration has them, emulated or real. Throws ConfigError on all ranks if
/// they cannot be emulated. Collective.
comm::NodeHierarchy find_nodes(const Config& config, MPI_Comm comm);

/// "2 nodes", "1 emulated node".
std::string format_nodes(int nodes, bool emulated);

/// The decomposition and this rank's box in it.
struct Domain {
  comm::NodeHierarchy nodes;
  comm::Decomposition decomposition;
  int rank;
  comm::Box owned;      ///< global coordinates
  comm::HaloSpec halo;  ///< extent of `owned`, radius
  int fields;
  int element_bytes;
  Layout layout;
  comm::DirectionSet needed;  ///< whose ghosts are exchanged, of all fields

  /// Separate arrays in memory: one per field (soa) or one for all fields (aos).
  int arrays() const { return layout == Layout::soa ? fields : 1; }
  /// Elements of one point in an array.
  int elements_per_point() const { return layout == Layout::soa ? 1 : fields; }
};

/// Lays the domain out over the ranks of `nodes`. A pure function: all ranks throw the same
/// ConfigError or none does. It names the key if there are more ranks than points, the
/// decomposition does not fit the ranks, some rank's extent is below the radius, the stencil
/// reaches farther than the radius or reads more neighbours than config.neighbors, or the layout
/// has no messages by field.
Domain make_domain(const Config& config, const comm::NodeHierarchy& nodes);

/// What a rank will allocate in one memory, in bytes.
struct MemoryNeed {
  double fields = 0;
  double messages = 0;
  double total() const { return fields + messages; }
};

/// In the memory of the host and in that of a device.
struct MemoryEstimate {
  MemoryNeed host, device;
  double windows = 0;  ///< of the host's, what is in memory that ranks share
};

/// Largest over the ranks. `copies`: sets of fields, which on a device have their twins on the
/// host; `methods`: of the exchange plans, one in each shape, each with a message buffer for each
/// direction of travel, on both sides where the transfer needs that or is not known.
MemoryEstimate estimate_memory(const Config& config, const Domain& domain, int copies,
                               const std::vector<comm::Method>& methods);

/// The memory, of those that ranks share, that comes closest to its limit, or goes farthest beyond
/// it.
struct SharedMemory {
  double needed;     ///< bytes, by all ranks that share it
  double available;  ///< bytes; infinite if the system does not tell
  bool fits() const { return needed <= available; }
};
/// Of nodes; this rank needs so much. The same on all ranks. Collective.
SharedMemory tightest_node(const MemoryNeed& need, MPI_Comm comm);
/// Likewise of the devices; each rank names its own. Collective.
SharedMemory tightest_device(const MemoryNeed& need, const dtype::Device& device, MPI_Comm comm);

/// Likewise of the nodes' shared memory, where each rank has a window of so many bytes. Collective.
SharedMemory tightest_windows(double bytes, MPI_Comm comm);

/// Throws ConfigError that ends with `remedy` if it does not fit; `of`: "node", "device".
void require_memory(const SharedMemory& memory, const std::string& of, const std::string& remedy);

/// "memory per rank: ...; a node needs ...".
std::string describe_memory(const MemoryNeed& need, const SharedMemory& memory,
                            const std::string& of);

/// What --dry-run prints: decomposition, messages, bytes, and `memory` in its midst; with several
/// nodes, what leaves them, too.
std::string describe_dry_run(const Config& config, const Domain& domain, const std::string& memory);

}  // namespace halocline::app
