// SPDX-License-Identifier: BSD-3-Clause
// Builds the backend of a plan from its method. Resolves `auto` and a transfer that is left open.
// Internal to lib/comm/exchange.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/exchange/backend.hpp"
#include "comm/exchange/wire_order.hpp"

namespace halocline::comm::detail {

/// Holds the parts of a plan.
struct BuildResult {
  std::unique_ptr<Backend> backend;  ///< moves the pieces of all rounds
  Traffic traffic;
  Exchange chosen;
  dtype::Transfer transfer;
  std::optional<double> predicted_seconds;
  std::vector<std::string> packed_by_mpi;
};

/// Builds the backend of `method` for the pieces `all`. Throws ConfigError on all ranks if the
/// method is not possible. Collective.
BuildResult build(std::shared_ptr<const Communicator> comm, const Method& method,
                  const SendsAndReceives& all, const ExchangePlan::Options& options,
                  const NodeHierarchy& nodes);

}  // namespace halocline::comm::detail
