// SPDX-License-Identifier: BSD-3-Clause
// Turns jobs into pieces in wire order, the same on both sides of every message. Internal to
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

/// Holds both sides of a rank's jobs, in wire order.
struct SendsAndReceives {
  Pieces sends, receives;
};

/// Returns the pieces of `jobs` that carry data. For `message_of_tag` see ExchangePlan::Options.
/// Throws ConfigError for jobs that are not valid. Local. O(jobs log jobs).
SendsAndReceives sides_of(const std::vector<ExchangeJob>& jobs, int ranks,
                          const std::function<int(int)>& message_of_tag);

/// Throws ConfigError on all ranks unless each rank sends exactly what its partners expect.
/// Collective.
void require_match(const Communicator& comm, const SendsAndReceives& sides);

/// Returns the pieces of both sides for which a condition holds, in their order.
template <class Condition>
SendsAndReceives filter(const SendsAndReceives& all, Condition condition) {
  SendsAndReceives out;
  std::copy_if(all.sends.begin(), all.sends.end(), std::back_inserter(out.sends), condition);
  std::copy_if(all.receives.begin(), all.receives.end(), std::back_inserter(out.receives),
               condition);
  return out;
}

/// Returns the pieces that a rank sends, or those that it receives, with longer messages divided
/// into chunks. Only pieces for which `divides` holds are divided. A chunk ends with the piece that
/// brings it to `chunk_bytes`. Both sides get the same chunks. Local.
Pieces in_chunks(const Pieces& pieces, const std::function<bool(const Piece&)>& divides,
                 std::int64_t chunk_bytes);

/// Returns the traffic that `sends` make. Local.
Traffic count_traffic(const Pieces& sends, const NodeHierarchy& nodes);

/// Returns the number of rounds over all ranks, at least 1. Collective.
int count_rounds(const Communicator& comm, const SendsAndReceives& sides);

/// Returns the least power of two as unit, in bytes, for which no rank needs counts or
/// displacements beyond `limit`. Collective.
CountUnits agree_on_units(const Communicator& comm, const SendsAndReceives& sides,
                          std::int64_t limit);

}  // namespace halocline::comm::detail
