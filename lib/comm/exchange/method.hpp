// SPDX-License-Identifier: BSD-3-Clause
// Names the ways to exchange.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "dtype/model/transfer_selector.hpp"

namespace halocline::comm {

/// Lists the ways in which an ExchangePlan moves the bytes of its jobs. Methods that are ours copy
/// the data from a rank to itself from layout to layout, without MPI. The manual's word `method`
/// means this exchange, or with a colon the exchange and its transfer (struct Method).
enum class Exchange {
  alltoallv,         ///< messages packed by our plans, one MPI_Alltoallv
  neighbor,          ///< messages packed by our plans, one MPI_Neighbor_alltoallv
  p2p,               ///< persistent sends and receives of packed messages, unpacked as they arrive
  shared,            ///< one copy from layout to layout on a node, p2p between nodes
  partitioned,       ///< p2p with partitioned sends of MPI 4: parts leave as they are packed
  automatic,         ///< `shared` or p2p, by where the buffers are and what a model predicts
  vendor_pack,       ///< MPI_Pack per job, MPI_Alltoallv, MPI_Unpack ([PEA21] section 6.4)
  vendor_alltoallw,  ///< the user's derived types in one MPI_Alltoallw
  vendor_neighbor,   ///< the user's derived types in one MPI_Neighbor_alltoallw
  vendor_p2p,        ///< the user's derived types in persistent sends and receives
};

/// Returns all exchanges, in the order in which help texts and tables list them.
std::span<const Exchange> all_exchanges();

/// Returns the name of an exchange, such as "vendor-pack": the same on the command line, in results
/// and in code.
std::string_view name(Exchange exchange);

/// Returns why the MPI of this build does not have the exchange; empty if it has.
std::string why_not_available(Exchange exchange);

/// Tells if an exchange leaves the datatypes to the installed MPI. These exchanges are the
/// baselines of every comparison. They have no transfers of ours.
bool is_vendor(Exchange exchange);

/// Tells if an exchange can have several messages for a partner
/// (ExchangePlan::Options::message_of_tag).
bool has_several_messages(Exchange exchange);

/// Describes an exchange and, for exchanges that are ours, how packed bytes travel.
struct Method {
  Exchange exchange = Exchange::alltoallv;
  std::optional<dtype::Transfer> transfer = std::nullopt;  ///< unset: chosen by the plan

  Method() = default;
  Method(Exchange e, std::optional<dtype::Transfer> t = std::nullopt) : exchange(e), transfer(t) {}
  bool operator==(const Method&) const = default;
};

/// Returns the name of a method, such as "alltoallv" or "alltoallv:one-shot".
std::string name(const Method& method);

/// Returns the method of that name. "alltoallv:auto" is alltoallv with an open transfer, "auto" is
/// automatic. Throws ConfigError that lists the possible names.
Method parse_method(std::string_view name);

}  // namespace halocline::comm
