// SPDX-License-Identifier: BSD-3-Clause
// Decides from the configuration which halos travel and in which messages.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "comm/halo/halo_spec.hpp"
#include "config.hpp"
#include "domain.hpp"

namespace halocline::app {

/// Returns the shapes that the command uses: for run one, for compare all that the user names.
std::vector<comm::HaloShape> shapes_of(const Config& config);

/// Returns the halos that the arrays of a domain need, in shape `shape`.
comm::HaloMessages halo_messages(const Domain& domain, comm::HaloShape shape);

/// Returns the function that groups the tags of halo_jobs() into messages by config.messages.
/// Empty: one message per partner.
std::function<int(int tag)> message_of_tag(const Config& config, const Domain& domain);

/// Returns the grouping of messages that `method` uses: config.messages, or one message per partner
/// for methods without a choice.
Messages messages_of(const Config& config, const comm::Method& method);

/// Counts the bytes, regions and messages that a rank sends in one exchange.
struct HaloTraffic {
  double bytes_to_others = 0;  ///< floating-point, since a dry run's number may exceed any integer
  double bytes_to_self = 0;
  double bytes_off_node = 0;          ///< part of bytes_to_others that goes to other nodes
  std::int64_t regions = 0;           ///< regions of all arrays
  std::int64_t messages = 0;          ///< messages to other ranks, if the method has one per
                                      ///< partner
  std::int64_t grouped_messages = 0;  ///< messages to other ranks, grouped by config.messages
};

/// Returns the traffic of rank `rank` in `decomposition`. Pure; O(fields).
HaloTraffic halo_traffic(const Config& config, const Domain& domain,
                         const comm::Decomposition& decomposition, int rank, comm::HaloShape shape);

/// Returns the traffic of a rank with the largest box whose neighbours are all itself. No rank
/// sends more.
HaloTraffic largest_halo_traffic(const Config& config, const Domain& domain, comm::HaloShape shape);

}  // namespace halocline::app
