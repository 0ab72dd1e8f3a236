// SPDX-License-Identifier: BSD-3-Clause
// Places ranks in a grid, so that little of a halo leaves its node.
//
// Best peer: cwpearson/stencil solves a quadratic assignment of boxes to devices. GHEX leaves the
// placement to the user, and Open MPI ignores the reorder of MPI_Cart_create. Here all points that
// leave a node are counted, for any sizes of nodes, grids and boxes. The natural order is kept
// unless another one is better.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "comm/halo/decomposition.hpp"
#include "comm/halo/direction.hpp"

namespace halocline::comm {

/// Says if ranks keep their natural positions (`none`), or take positions such that each node owns
/// a compact part of the grid (`node`).
enum class Reorder { none, node };

/// Counts the points of one field that ranks send to ranks of other nodes in one exchange of shape
/// direct. Comparison looks at the busiest node first.
struct OffNodePoints {
  std::int64_t busiest = 0;  ///< sent by all ranks of the node that sends most
  std::int64_t total = 0;    ///< sent by all ranks
  auto operator<=>(const OffNodePoints&) const = default;
};

/// Returns the points that leave nodes. Local; O(ranks).
///
/// \param decomposition boxes of all ranks
/// \param radius ghost points on each side, by axis
/// \param directions directions whose ghosts are exchanged, each with its opposite
/// \param node_of node of each rank, as NodeHierarchy numbers them
OffNodePoints off_node_points(const Decomposition& decomposition,
                              const PerAxis<std::int64_t>& radius, const DirectionSet& directions,
                              const std::vector<int>& node_of);

/// Returns the decomposition among `choices` whose nodes send least to other nodes through faces.
/// `choices` are in natural order of ranks, the preferred one first. Before they are compared,
/// ranks get their positions by `reorder`. With one node, returns the first choice.
///
/// Only faces count, since edges and corners, of second order, would favour slabs. Positions in a
/// given grid are chosen by off_node_points(), and are never worse than the natural ones.
/// Candidates are tiles with as many positions as the largest node has ranks. For nodes of unequal
/// sizes, a bisection is a candidate, too. With up to 64 ranks, two ranks change places as long as
/// that saves something. With up to 16 ranks, this starts from random orders, too.
///
/// The result is mostly the least, but not always: this is a quadratic assignment problem. A pure
/// function, the same on all ranks. Local; O(choices * tiles * ranks * log(ranks)). With up to 64
/// ranks, each pass over all pairs of ranks adds O(ranks^2) changes of places.
Decomposition place(const std::vector<Decomposition>& choices, const PerAxis<std::int64_t>& radius,
                    const DirectionSet& directions, const std::vector<int>& node_of,
                    Reorder reorder);

}  // namespace halocline::comm
