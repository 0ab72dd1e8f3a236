// SPDX-License-Identifier: BSD-3-Clause
// A 3-D grid of ranks over a 3-D grid of points.
//
// Best peer: GHEX's domain descriptors leave the split to the user and MPI_Cart_create knows no
// points; here the split is a pure function of extents and rank, so that every rank (and a test)
// can ask for any other rank's box.
#pragma once

#include <optional>
#include <vector>

#include "comm/halo/direction.hpp"

namespace halocline::comm {

/// A box of points: first point and extent, in x, y, z.
struct Box {
  Int3 begin;
  Int3 extent;
  std::int64_t points() const { return extent[0] * extent[1] * extent[2]; }
  bool operator==(const Box&) const = default;
};

/// Splits `global` points over a grid of `ranks` (both x, y, z). The points of a dimension that do
/// not divide evenly go to the first positions of it, one each. Not a collective: it holds no
/// communicator.
class Decomposition {
 public:
  /// `positions`: where each rank stands in the grid, as (z * ranks_y + y) * ranks_x + x; empty:
  /// that of rank r is r, the natural order. Throws ConfigError if a dimension has more ranks than
  /// points, if anything is not positive, or unless each position has one rank.
  Decomposition(Int3 global, Int3 ranks, bool periodic, std::vector<int> positions = {});

  const Int3& global() const { return global_; }
  const Int3& ranks() const { return ranks_; }
  bool periodic() const { return periodic_; }
  int size() const { return static_cast<int>(ranks_[0] * ranks_[1] * ranks_[2]); }

  /// Position of `rank` in the grid of ranks.
  Int3 coordinates(int rank) const;

  /// Extent of the largest box: at the first position.
  Int3 largest_extent() const;

  /// The points that `rank` owns, in global coordinates.
  Box owned(int rank) const;

  /// The rank that `rank` sees in `direction`: itself where a periodic dimension has one rank,
  /// nobody beyond an open boundary.
  std::optional<int> neighbor(int rank, Direction direction) const;

 private:
  Int3 global_;
  Int3 ranks_;
  bool periodic_;
  std::vector<int> positions_;  // by rank; empty: natural
  std::vector<int> rank_at_;    // by position; likewise
};

/// Every grid of `ranks` ranks, fewest in x first, then fewest in y.
std::vector<Int3> rank_grids(int ranks);

/// The grids of `ranks` ranks over `global` points by the halo surface of the largest box, least
/// first and none with more than twice the least; of equal ones first the one that splits z before
/// y before x, since x faces have the shortest rows. Dimensions with fewer points per rank than
/// `least` are avoided. Throws ConfigError if no grid fits.
std::vector<Int3> good_grids(int ranks, const Int3& global, std::int64_t least);

/// The most cubic grids of `ranks` ranks, the one with the largest factor in z first: for equal
/// boxes per rank.
std::vector<Int3> good_grids(int ranks);

/// The first of good_grids().
Int3 choose_ranks(int ranks, const Int3& global, std::int64_t least);
Int3 choose_ranks(int ranks);

}  // namespace halocline::comm
