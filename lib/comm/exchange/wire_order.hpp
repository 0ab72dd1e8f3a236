// SPDX-License-Identifier: BSD-3-Clause
// From jobs to pieces in wire order, the same on both sides of every message. Internal to
// lib/comm/exchange.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <vector>

#include "comm/exchange/backend.hpp"
#include "comm/node/node_hierarchy.hpp"

namespace halocline::comm::detail {

/// Both sides of a rank's jobs, in wire order.
struct Sides {
  Pieces sends, receives;
};

/// The pieces that carry data; `message_of_tag` as in ExchangePlan::Options. Throws ConfigError for
/// jobs that cannot be. Local; O(jobs log jobs).
Sides sides_of(const std::vector<ExchangeJob>& jobs, int ranks,
               const std::function<int(int)>& message_of_tag);

/// Throws ConfigError on all ranks unless what each rank sends is what its partners expect.
/// Collective.
void require_match(const Communicator& comm, const Sides& sides);

/// The pieces of both sides for which a condition holds, in their order.
template <class Condition>
Sides filter(const Sides& all, Condition condition) {
  Sides out;
  std::copy_if(all.sends.begin(), all.sends.end(), std::back_inserter(out.sends), condition);
  std::copy_if(all.receives.begin(), all.receives.end(), std::back_inserter(out.receives),
               condition);
  return out;
}

/// The pieces of one direction of travel with longer messages divided: one of pieces for which
/// `divides` holds ends with the piece that brings it to `chunk_bytes`. Both sides come to the same
/// chunks. Local.
Pieces in_chunks(const Pieces& pieces, const std::function<bool(const Piece&)>& divides,
                 std::int64_t chunk_bytes);

/// What the pieces come to. Local.
Traffic count_traffic(const Pieces& sends, const NodeHierarchy& nodes);

/// How many rounds there are for all ranks. Collective.
int count_rounds(const Communicator& comm, const Sides& sides);

/// The least power of two for which no rank's buffers need counts or displacements beyond `limit`,
/// counted in so many bytes. Collective.
CountUnits agree_on_units(const Communicator& comm, const Sides& sides, std::int64_t limit);

}  // namespace halocline::comm::detail
