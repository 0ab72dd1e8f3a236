// SPDX-License-Identifier: BSD-3-Clause
// Decides which rank owns which points, from the configuration and the number of ranks.
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

/// Returns the nodes of the configuration, emulated or real. Collective.
/// \throws ConfigError on all ranks if the nodes cannot be emulated.
comm::NodeHierarchy find_nodes(const Config& config, MPI_Comm comm);

/// Returns the nodes in words: "2 nodes", "1 emulated node".
std::string format_nodes(int nodes, bool emulated);

/// Holds the decomposition and this rank's box in it.
struct Domain {
  comm::NodeHierarchy nodes;
  comm::Decomposition decomposition;
  int rank;
  comm::Box owned;      ///< box in global coordinates
  comm::HaloSpec halo;  ///< extent of `owned`, radius
  int fields;
  int element_bytes;  ///< of a number: a real value, or a part of a complex one
  int parts;          ///< numbers of a value: 2 if it is complex, else 1
  Layout layout;
  Pad pad;  ///< never automatic
  comm::Pages pages;
  PerSide<Boundary> boundary;
  std::vector<comm::DirectionSet> needs;  ///< by array: directions whose ghosts are exchanged
  double beside_windows = 0;  ///< bytes that a rank allocates beside windows of fields, if known

  /// Returns the directions whose ghosts some array needs.
  comm::DirectionSet needed() const;
  /// Tells if some array needs other directions than another array.
  bool needs_differ() const;

  /// Returns the number of separate arrays in memory: one per field (soa) or one for all fields
  /// (aos).
  int arrays() const { return layout == Layout::soa ? fields : 1; }
  /// Returns the number of elements of one point in an array. An element is a number.
  int elements_per_point() const { return (layout == Layout::soa ? 1 : fields) * parts; }
  int value_bytes() const { return element_bytes * parts; }

  /// Returns the extents of an array in memory, with the padding behind each row. The first extent
  /// is the distance from row to row; points.
  comm::Int3 extents_in_memory() const { return extents_in_memory(halo); }
  /// Returns the same for another rank, which has this halo.
  comm::Int3 extents_in_memory(const comm::HaloSpec& of_rank) const;
  /// Returns the number of unused elements before the first stored point of an array.
  std::int64_t left_padding() const;
};

/// Lays the domain out over the ranks of `nodes`. A pure function: all ranks throw the same
/// ConfigError or none does.
/// \throws ConfigError that names the key in these cases:
/// - There are more ranks than points.
/// - The decomposition does not fit the ranks.
/// - Some rank's extent is below the radius.
/// - The stencil reaches farther than the radius or reads more neighbours than config.neighbors.
/// - The layout has no messages by field.
/// - The kinds of boundaries do not suit the physics; see check_boundaries().
Domain make_domain(const Config& config, const comm::NodeHierarchy& nodes);

/// Returns ", rows of 70 points padded to 72 (aligned to 64 bytes)" for rank 0; nothing without
/// padding.
std::string describe_pad(const Domain& domain);

/// Returns "96 of 208 field-blocks": the blocks of ghosts, one for each direction of each field,
/// that an exchange fills.
std::string describe_blocks(const Domain& domain);

/// Returns the domain with the needs of one field alone. With layout aos its array travels.
Domain with_needs_of(Domain domain, int field, const comm::DirectionSet& needs);

struct PhysicsInfo;
/// Returns "shock takes 3 exchanges more in each substep, with 26, 26 and 6 neighbours", or nothing
/// without a helping field.
std::string describe_helper(const PhysicsInfo& info);

/// Estimates the bytes that a rank allocates in one memory.
struct MemoryNeed {
  double fields = 0;
  double messages = 0;
  double total() const { return fields + messages; }
};

/// Holds the needs of a rank in the memory of the host and in that of a device.
struct MemoryEstimate {
  MemoryNeed host, device;
  double addresses = 0;  ///< bytes that a rank takes on the host beside fields, with alignment
  double windows = 0;    ///< part of `host` that lies in windows, which ranks share; bytes
};

/// Estimates the memory of the rank that needs most.
/// \param copies number of sets of fields; a set on a device has its twin on the host.
/// \param methods methods of the exchange plans; a method has one plan in each shape. A plan has a
/// message buffer for sending and one for receiving. They are on host and device if the transfer
/// needs both or is not known. The estimate adds what `run` keeps for boundaries and for its files.
MemoryEstimate estimate_memory(const Config& config, const Domain& domain, int copies,
                               const std::vector<comm::Method>& methods);

/// Describes need and supply of a memory that ranks share. The functions that return it take the
/// memory that comes closest to its limit, or exceeds it most.
struct SharedMemory {
  double needed;     ///< bytes of all ranks that share the memory
  double available;  ///< bytes; infinite if the system does not say
  bool fits() const { return needed <= available; }
};
/// Returns the tightest memory of a node, where this rank needs `need`. Same result on all ranks.
/// Collective.
SharedMemory tightest_node(const MemoryNeed& need, MPI_Comm comm);
/// Returns the tightest memory of a device, where this rank needs `need` on its `device`. Same
/// result on all ranks. Collective.
SharedMemory tightest_device(const MemoryNeed& need, const dtype::Device& device, MPI_Comm comm);

/// Returns the tightest shared memory of a node, where this rank has a window of `bytes` bytes.
/// Same result on all ranks. Collective.
SharedMemory tightest_windows(double bytes, MPI_Comm comm);

/// Returns the addresses (`ulimit -v`) of the tightest rank, where this rank needs `bytes`. Same
/// result on all ranks. Collective.
SharedMemory tightest_addresses(double bytes, MPI_Comm comm);

/// Checks that the need fits into `memory`. `of` names it: "node", "device".
/// \throws ConfigError that ends with `remedy` if it does not fit.
void require_memory(const SharedMemory& memory, const std::string& of, const std::string& remedy);

/// Returns a line "memory per rank: ...; a node needs ...".
std::string describe_memory(const MemoryNeed& need, const SharedMemory& memory,
                            const std::string& of);

/// Returns the text of --dry-run: decomposition, then `memory`, then messages and bytes. With
/// several nodes it says which bytes leave them.
std::string describe_dry_run(const Config& config, const Domain& domain, const std::string& memory);

}  // namespace halocline::app
