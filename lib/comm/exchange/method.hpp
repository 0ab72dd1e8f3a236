// SPDX-License-Identifier: BSD-3-Clause
// The ways to exchange, by name.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "dtype/select/transfer_selector.hpp"

namespace halocline::comm {

/// How an ExchangePlan moves the bytes of its jobs.
enum class Exchange {
  alltoallv,         ///< our pack plans, MPI_Alltoallv, our unpack
  neighbor,          ///< likewise MPI_Neighbor_alltoallv among the real partners
  p2p,               ///< likewise persistent sends and receives, unpacked as they arrive
  shared,            ///< on-node partners copy straight from layout to layout, others as p2p
  partitioned,       ///< as p2p, with MPI 4's partitioned sends: parts leave as they are packed
  automatic,         ///< `shared` or p2p, by where the buffers are and what a model predicts
  vendor_pack,       ///< MPI_Pack per job, MPI_Alltoallv, MPI_Unpack: the case study of [PEA21]
                     ///< section 6.4
  vendor_alltoallw,  ///< the user's derived types straight into MPI_Alltoallw
  vendor_neighbor,   ///< likewise MPI_Neighbor_alltoallw
  vendor_p2p,        ///< likewise persistent sends and receives
};
// In all of ours, what a rank has for itself is copied from layout to layout, not sent.

/// All exchanges, in the order in which help texts and tables list them.
std::span<const Exchange> all_exchanges();

/// "alltoallv", "vendor-pack": the same on the command line, in results and in code.
std::string_view name(Exchange exchange);

/// Why the MPI that this was built for has no such exchange; empty: it has.
std::string why_not_available(Exchange exchange);

/// True for the exchanges that leave the datatypes to the installed MPI: the baselines of every
/// comparison. They have no transfers of ours.
bool is_vendor(Exchange exchange);

/// True for the exchanges that can have several messages for a partner
/// (ExchangePlan::Options::message_of_tag).
bool has_several_messages(Exchange exchange);

/// An exchange and, for those that are ours, how packed bytes travel.
struct Method {
  Exchange exchange = Exchange::alltoallv;
  std::optional<dtype::Transfer> transfer = std::nullopt;  ///< none: chosen when a plan is made

  Method() = default;
  Method(Exchange e, std::optional<dtype::Transfer> t = std::nullopt) : exchange(e), transfer(t) {}
  bool operator==(const Method&) const = default;
};

/// "alltoallv", "alltoallv:one-shot".
std::string name(const Method& method);

/// The method of that name; "alltoallv:auto" is alltoallv, "auto" is automatic. Throws ConfigError
/// that lists the names there are.
Method parse_method(std::string_view name);

}  // namespace halocline::comm
