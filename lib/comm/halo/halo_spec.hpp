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

/// The jobs of `rank` for all 26 directions and `fields` fields: the producer for halos of an
/// ExchangePlan's job list.
///
/// The region of direction d fills the ghosts of direction -d at the neighbour, and with one or two
/// ranks in a dimension one neighbour gets several regions; the tags, d * fields + field, keep them
/// apart (errata B.8). Directions beyond an open boundary have no job. Throws ConfigError if an
/// extent is below the radius. Local; O(26 fields).
std::vector<ExchangeJob> halo_jobs(const Decomposition& decomposition, int rank,
                                   const HaloSpec& spec, int fields,
                                   const DescribeRegion& describe);

}  // namespace halocline::comm
