// SPDX-License-Identifier: BSD-3-Clause
// The halo of one rank's box: which points go to whom and where the others' points arrive.
#pragma once

#include <functional>
#include <vector>

#include "comm/exchange/job.hpp"
#include "comm/halo/decomposition.hpp"

namespace halocline::comm {

/// Geometry of a box of `extent` points (x, y, z) with `radius` ghost points on all sides. Local
/// coordinates: point (0, 0, 0) is the first *stored* one, so owned points begin at radius.
struct HaloSpec {
  Int3 extent;
  std::int64_t radius;

  /// Points per dimension in memory: extent + 2 radius.
  Int3 stored() const;
  /// The owned points.
  Box interior() const;
  /// The owned points that the neighbour in `direction` needs.
  Box send_box(Direction direction) const;
  /// The ghost points that the neighbour in `direction` fills; opposite() on its side, of the same
  /// extent.
  Box ghost_box(Direction direction) const;
};

/// One side of a message as the user describes it.
struct Region {
  void* buffer;
  std::int64_t count;
  MPI_Datatype type;
};

/// Writes `box` (local coordinates) of field `field` as an MPI datatype; the type must live until
/// the plan is built.
using DescribeRegion = std::function<Region(int field, const Box& box)>;

/// In which pieces a halo travels.
enum class HaloShape {
  direct,  ///< 26 regions at once
  axes     ///< 6 slabs in three rounds, x before y before z; edges and corners travel with them
};

/// The directions whose ghosts an exchange writes that is to fill the `needed` ones. With `axes`
/// these are some more: those through which needed ones travel, and what lies between them in a
/// slab. What is neither needed nor on the way of what is needed gets whatever the neighbour's
/// ghosts hold.
DirectionSet filled_directions(const DirectionSet& needed, HaloShape shape);

/// What of a halo travels, and how; the same on all ranks.
struct HaloMessages {
  HaloShape shape = HaloShape::direct;
  /// By field, the directions whose ghosts are read; empty: all of all fields. See
  /// filled_directions() for which are written.
  std::vector<DirectionSet> needs = {};
};

/// The jobs of `rank` for `fields` fields: the producer for halos of an ExchangePlan's job list.
///
/// The region of direction d fills the ghosts of direction -d at the neighbour, and with one or two
/// ranks in a dimension one neighbour gets several regions; the tags, d * fields + field, keep them
/// apart (errata B.8). Ghosts beyond an open boundary have no job, in no shape. Throws ConfigError
/// if an extent is below the radius, or needs are not given for each field. Local; O(26 fields).
std::vector<ExchangeJob> halo_jobs(const Decomposition& decomposition, int rank,
                                   const HaloSpec& spec, int fields, const DescribeRegion& describe,
                                   const HaloMessages& messages = {});

/// The field of a job's tag, and the direction of what it sends: how to group messages.
inline int field_of_tag(int tag, int fields) {
  return tag % fields;
}
inline int direction_of_tag(int tag, int fields) {
  return tag / fields;
}

}  // namespace halocline::comm
