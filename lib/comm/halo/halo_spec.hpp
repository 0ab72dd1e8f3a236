// SPDX-License-Identifier: BSD-3-Clause
// Describes the halo of one rank's box: the points sent to each neighbour, and the ghosts that
// receive theirs.
#pragma once

#include <functional>
#include <vector>

#include "comm/exchange/job.hpp"
#include "comm/halo/decomposition.hpp"

namespace halocline::comm {

/// Describes the geometry of a box of `extent` points (x, y, z) with `radius` ghost points on both
/// sides of each axis. In local coordinates, point (0, 0, 0) is the first *stored* point. Owned
/// points begin at `radius`.
struct HaloSpec {
  Int3 extent;
  PerAxis<std::int64_t> radius;

  /// Returns the points per dimension in memory: extent + 2 radius.
  Int3 stored() const;
  /// Returns the box of the owned points.
  Box interior() const;
  /// Returns the owned points that the neighbour in `direction` needs.
  Box send_box(Direction direction) const;
  /// Returns the ghost points that the neighbour in `direction` fills. The neighbour sends its
  /// send_box(direction.opposite()), which has the same extent.
  Box ghost_box(Direction direction) const;
};

/// Describes one side of a message by the user's datatype.
struct Region {
  void* buffer;
  std::int64_t count;
  MPI_Datatype type;
};

/// Describes `box` (local coordinates) of field `field` by an MPI datatype. The type must live
/// until the plan is built.
using DescribeRegion = std::function<Region(int field, const Box& box)>;

/// Says in which pieces a halo travels.
enum class HaloShape {
  direct,  ///< 26 regions in one round
  axes     ///< 6 slabs in three rounds, x before y before z; edges and corners travel in the slabs
};

/// Returns the directions whose ghosts an exchange writes to fill the `needed` ones. Shape `axes`
/// writes more directions. Some are stations through which needed ghosts travel. Others lie between
/// needed directions and stations in a slab. The latter get whatever the neighbour's ghosts hold.
DirectionSet filled_directions(const DirectionSet& needed, HaloShape shape);

/// Says what part of a halo travels, and in which shape. The same on all ranks.
struct HaloMessages {
  HaloShape shape = HaloShape::direct;
  /// Lists the directions whose ghosts are read, by field. Empty: all directions of all fields.
  /// filled_directions() returns the directions whose ghosts are written.
  std::vector<DirectionSet> needs = {};
};

/// Returns the halo jobs of `rank` for `fields` fields, to make an ExchangePlan from.
///
/// The region of direction d fills the ghosts of direction -d at the neighbour. With one or two
/// ranks in a dimension, one neighbour gets several regions. The tags, d * fields + field, tell the
/// regions apart (errata B.8). Ghosts beyond an open boundary have no job in any shape. Local.
/// O(26 fields).
///
/// \throws ConfigError if an extent is below the radius, or if needs are not given for each field
std::vector<ExchangeJob> halo_jobs(const Decomposition& decomposition, int rank,
                                   const HaloSpec& spec, int fields, const DescribeRegion& describe,
                                   const HaloMessages& messages = {});

/// Returns the field of a job's tag. direction_of_tag() returns the direction of the region that
/// the job sends. Both help to group messages.
inline int field_of_tag(int tag, int fields) {
  return tag % fields;
}
inline int direction_of_tag(int tag, int fields) {
  return tag / fields;
}

}  // namespace halocline::comm
