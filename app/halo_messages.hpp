// SPDX-License-Identifier: BSD-3-Clause
// Which halos travel and in which messages, from the configuration.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "comm/halo/halo_spec.hpp"
#include "config.hpp"
#include "domain.hpp"

namespace halocline::app {

/// The shapes that the command uses: run one, compare all that the user names.
std::vector<comm::HaloShape> shapes_of(const Config& config);

/// What the arrays of a domain need, in that shape.
comm::HaloMessages halo_messages(const Domain& domain, comm::HaloShape shape);

/// How config.messages groups the tags of halo_jobs(); none: one message per partner.
std::function<int(int tag)> message_of_tag(const Config& config, const Domain& domain);

/// What config.messages comes to with a method: some have one message per partner whatever it says.
Messages messages_of(const Config& config, const comm::Method& method);

/// What a rank sends in one exchange.
struct HaloTraffic {
  double bytes_to_others = 0;  ///< a dry run's may exceed any integer
  double bytes_to_self = 0;
  double bytes_off_node = 0;          ///< of those to others, what goes to other nodes
  std::int64_t regions = 0;           ///< of all arrays
  std::int64_t messages = 0;          ///< to others, of methods that have one per partner
  std::int64_t grouped_messages = 0;  ///< to others, as config.messages groups them
};

/// Of a rank if the domain is decomposed so. Pure; O(1).
HaloTraffic halo_traffic(const Config& config, const Domain& domain,
                         const comm::Decomposition& decomposition, int rank, comm::HaloShape shape);

/// Of a rank with the largest box, if all of its neighbours were itself: none sends more.
HaloTraffic largest_halo_traffic(const Config& config, const Domain& domain, comm::HaloShape shape);

}  // namespace halocline::app
