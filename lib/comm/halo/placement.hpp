// SPDX-License-Identifier: BSD-3-Clause
// Which rank takes which position of a grid, so that little of a halo leaves its node.
//
// Best peer: cwpearson/stencil solves a quadratic assignment of boxes to devices, GHEX leaves
// the placement to the user, and Open MPI ignores the reorder of MPI_Cart_create; here all points
// that leave a node are counted, for any sizes of nodes, grids and boxes, and the natural order is
// kept where nothing is gained.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "comm/halo/decomposition.hpp"
#include "comm/halo/direction.hpp"

namespace halocline::comm {

/// Whether ranks keep their natural positions in the grid, or take others so that each node owns a
/// compact part of it.
enum class Reorder { none, node };

/// Points of one field that ranks send to ranks of other nodes in one exchange of shape direct.
/// Compared by the busiest node first.
struct OffNodePoints {
  std::int64_t busiest = 0;  ///< by the ranks of the node that sends most
  std::int64_t total = 0;    ///< by all ranks
  auto operator<=>(const OffNodePoints&) const = default;
};

/// `directions`: those whose ghosts are exchanged, with each also the opposite one. `node_of`: the
/// node of each rank, as NodeHierarchy numbers them. Local; O(ranks).
OffNodePoints off_node_points(const Decomposition& decomposition, std::int64_t radius,
                              const DirectionSet& directions, const std::vector<int>& node_of);

/// Of `choices`, decompositions in natural order and in order of preference, the one whose nodes
/// send least through faces to others, after its ranks have got their positions by `reorder`. With
/// one node the first.
///
/// Through faces alone, since edges and corners, of second order, would speak for slabs. Positions
/// in a given grid however are chosen by off_node_points(), and never worse than the natural ones:
/// tiles with as many positions as the largest node has ranks, for nodes of unequal sizes also a
/// bisection; with up to 64 ranks any two then change places as long as that saves something, and
/// with up to 16 that is begun from random orders, too. Mostly, not always the least there is: this
/// is a quadratic assignment problem. A pure function, the same on all ranks. Local;
/// O(choices * tiles * ranks * log(ranks)), with up to 64 ranks times these.
Decomposition place(const std::vector<Decomposition>& choices, std::int64_t radius,
                    const DirectionSet& directions, const std::vector<int>& node_of,
                    Reorder reorder);

}  // namespace halocline::comm
