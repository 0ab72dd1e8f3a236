// SPDX-License-Identifier: BSD-3-Clause
// Who owns which points, from the configuration and the number of ranks.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "comm/halo/decomposition.hpp"
#include "comm/halo/halo_spec.hpp"
#include "config.hpp"

namespace halocline::app {

/// The decomposition and this rank's box in it.
struct Domain {
  comm::Decomposition decomposition;
  int rank;
  comm::Box owned;      ///< global coordinates
  comm::HaloSpec halo;  ///< extent of `owned`, radius
  int fields;
  int element_bytes;
  Layout layout;

  /// Separate arrays in memory: one per field (soa) or one for all fields (aos).
  int arrays() const { return layout == Layout::soa ? fields : 1; }
  /// Elements of one point in an array.
  int elements_per_point() const { return layout == Layout::soa ? 1 : fields; }
};

/// Lays the domain out over `ranks` ranks. A pure function: all ranks throw the same ConfigError or
/// none does. It names the key if there are more ranks than points, the decomposition does not fit
/// the ranks, or some rank's extent is below the radius or the stencil reaches farther than the
/// radius.
Domain make_domain(const Config& config, int rank, int ranks);

/// What a rank will allocate, in bytes.
struct MemoryEstimate {
  double fields = 0;
  double messages = 0;
  double total() const { return fields + messages; }
};

/// Largest over the ranks. `copies`: sets of fields; `plans`: exchange plans with a message buffer
/// for each direction of travel.
MemoryEstimate estimate_memory(const Domain& domain, int copies, int plans);

/// The node that comes closest to its limit, or goes farthest beyond it.
struct NodeMemory {
  double needed;     ///< bytes, by all ranks of the node
  double available;  ///< bytes; infinite if the system does not tell
  bool fits() const { return needed <= available; }
};
/// The same on all ranks. Collective.
NodeMemory tightest_node(const MemoryEstimate& estimate, MPI_Comm comm);

/// Throws ConfigError if it does not fit.
void require_memory(const NodeMemory& memory);

/// What --dry-run prints: decomposition, messages, bytes and memory per rank.
std::string describe_dry_run(const Domain& domain, const MemoryEstimate& estimate,
                             const NodeMemory& memory);

}  // namespace halocline::app
