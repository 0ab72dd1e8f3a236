// SPDX-License-Identifier: BSD-3-Clause
// From a method to a backend: what `auto` and a transfer that is left open stand for, and what
// moves which pieces. Internal to lib/comm/exchange.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/exchange/backend.hpp"
#include "comm/exchange/wire_order.hpp"

namespace halocline::comm::detail {

/// What a plan is made of.
struct Built {
  std::unique_ptr<Backend> backend;  ///< of all rounds
  Traffic traffic;
  Exchange chosen;
  dtype::Transfer transfer;
  std::optional<double> predicted_seconds;
  std::vector<std::string> packed_by_mpi;
};

/// Throws ConfigError on all ranks where a method is not possible. Collective.
Built build(std::shared_ptr<const Communicator> comm, const Method& method, const Sides& all,
            const ExchangePlan::Options& options, const NodeHierarchy& nodes);

}  // namespace halocline::comm::detail
