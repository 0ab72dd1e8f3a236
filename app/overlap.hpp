// SPDX-License-Identifier: BSD-3-Clause
// Which points are computed while messages travel, and which after they have arrived.
//
// Best peer: Astaroth overlaps inner and outer parts, too; here outer ones have rows as long as can
// be, never shorter than a vector, and there are none where a rank is its own neighbour.
#pragma once

#include <cstdint>
#include <vector>

#include "domain.hpp"

namespace halocline::app {

/// The owned points of a rank in two disjoint parts, in stored coordinates.
struct SplitPoints {
  comm::Box interior;               ///< reads no ghosts that travel; may be empty
  std::vector<comm::Box> boundary;  ///< up to 6 slabs: z and y sides in whole rows, x sides last
};

/// Splits for a stencil of radius `reach`. The x sides may be wider than that: rows of 32 bytes are
/// computed as fast as shorter ones. `own_at_start`: what the rank has for itself is there from the
/// beginning (ExchangePlan::own_at_start()), so that along an axis with one rank nothing is
/// boundary, unless it is open. Local.
SplitPoints split_points(const Domain& domain, std::int64_t reach, bool own_at_start);

/// Points of one array.
struct ArrayPart {
  int array;
  comm::Box box;
};

/// The points of `box` in all arrays, array after array, cut between planes into `chunks` parts of
/// about equal size, fewer where there are fewer planes. O(arrays + chunks).
std::vector<std::vector<ArrayPart>> cut_planes(const comm::Box& box, int arrays,
                                               std::int64_t chunks);

}  // namespace halocline::app
