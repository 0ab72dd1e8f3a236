// SPDX-License-Identifier: BSD-3-Clause
// Splits the points of a rank: some are computed while messages travel, the rest after messages
// have arrived.
//
// Best peer: Astaroth overlaps inner and outer parts, too. Here the outer parts have the longest
// possible rows, never shorter than a vector. There are none along an axis on which a rank is its
// own neighbour.
#pragma once

#include <cstdint>
#include <vector>

#include "domain.hpp"

namespace halocline::app {

/// Holds the owned points of a rank in two disjoint parts, in stored coordinates.
struct SplitPoints {
  comm::Box interior;               ///< points that read no ghosts from messages; may be empty
  std::vector<comm::Box> boundary;  ///< up to 6 slabs: z and y sides in whole rows, x sides last
};

/// Splits the owned points for a stencil of radius `reach`. The x sides may be wider than `reach`:
/// rows of 32 bytes are computed as fast as shorter ones. Local.
/// \param own_at_start ghosts that the rank fills itself are ready from the beginning
/// (ExchangePlan::own_at_start()). Then an axis with one rank has no boundary part, unless the axis
/// is open.
SplitPoints split_points(const Domain& domain, std::int64_t reach, bool own_at_start);

/// Names points of one part of a physics (Physics::parts()).
struct PartBox {
  int part;
  comm::Box box;
};

/// Cuts the points of `box` in all parts into `chunks` chunks of about equal size, part after part.
/// The cuts are between planes, so there are fewer chunks if there are fewer planes. O(parts +
/// chunks).
std::vector<std::vector<PartBox>> cut_planes(const comm::Box& box, int parts, std::int64_t chunks);

}  // namespace halocline::app
