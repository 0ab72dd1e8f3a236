// SPDX-License-Identifier: BSD-3-Clause
// Splits a 3-D grid of points over a 3-D grid of ranks.
//
// Best peer: GHEX's domain descriptors leave the split to the user, and MPI_Cart_create knows no
// points. Here the split is a pure function of extents and rank. So every rank (and a test) can ask
// for the box of any rank.
#pragma once

#include <optional>
#include <vector>

#include "comm/halo/direction.hpp"

namespace halocline::comm {

/// Describes a box of points by its first point and its extent, in x, y, z.
struct Box {
  Int3 begin;
  Int3 extent;
  std::int64_t points() const { return extent[0] * extent[1] * extent[2]; }
  bool operator==(const Box&) const = default;
};

/// Splits `global` points over a grid of `ranks` (both x, y, z). If the points of a dimension do
/// not divide evenly, its first positions get one more point each. Holds no communicator, so no
/// call is collective.
class Decomposition {
 public:
  /// Makes a decomposition in which `positions` has the place of each rank in the grid, as
  /// (z * ranks_y + y) * ranks_x + x. Empty: rank r is at position r, the natural order.
  ///
  /// \throws ConfigError if a dimension has more ranks than points, if a size is not positive, or
  /// unless each position has one rank
  Decomposition(Int3 global, Int3 ranks, PerAxis<bool> periodic, std::vector<int> positions = {});

  const Int3& global() const { return global_; }
  const Int3& ranks() const { return ranks_; }
  /// Tells of each axis if its opposite sides are neighbours.
  const PerAxis<bool>& periodic() const { return periodic_; }
  /// Tells if some axis has open boundaries.
  bool has_open_axis() const { return periodic_ != PerAxis(true); }
  int size() const { return static_cast<int>(ranks_[0] * ranks_[1] * ranks_[2]); }

  /// Returns the position of `rank` in the grid of ranks: x, y, z.
  Int3 coordinates(int rank) const;

  /// Returns the extent of the largest box, which is at the first position.
  Int3 largest_extent() const;

  /// Returns the box of points that `rank` owns, in global coordinates.
  Box owned(int rank) const;

  /// Returns the neighbour of `rank` in `direction`; nullopt beyond an open boundary. In a periodic
  /// dimension with one rank, the neighbour is `rank` itself.
  std::optional<int> neighbor(int rank, Direction direction) const;

 private:
  Int3 global_;
  Int3 ranks_;
  PerAxis<bool> periodic_;
  std::vector<int> positions_;  // by rank; empty: natural order
  std::vector<int> rank_at_;    // by position; empty: natural order
};

/// Returns every grid of `ranks` ranks, fewest in x first, then fewest in y.
std::vector<Int3> rank_grids(int ranks);

/// Returns good grids of `ranks` ranks over `global` points, by the halo of the largest box,
/// least first. Leaves out grids with more than twice the least halo. Among equal grids,
/// the first one splits z before y before x, since x faces have the shortest rows. Leaves out grids
/// with fewer points per rank in a dimension than `radius`. Throws ConfigError if no grid fits.
std::vector<Int3> good_grids(int ranks, const Int3& global, const PerAxis<std::int64_t>& radius);

/// Returns the most cubic grids of `ranks` ranks, for equal boxes per rank. The grid with the
/// largest factor in z is first.
std::vector<Int3> good_grids(int ranks);

/// Returns the first of good_grids().
Int3 choose_ranks(int ranks, const Int3& global, const PerAxis<std::int64_t>& radius);
Int3 choose_ranks(int ranks);

}  // namespace halocline::comm
