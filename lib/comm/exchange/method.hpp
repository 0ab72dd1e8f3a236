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
  alltoallv,         ///< our pack plans, MPI_Alltoallv, our unpack; self traffic stays out of MPI
  shared,            ///< fields of a device: copied straight into the neighbours' halos, all of
                     ///< whom are on this node
  vendor_pack,       ///< MPI_Pack per job, MPI_Alltoallv, MPI_Unpack: the case study of [PEA21]
                     ///< section 6.4
  vendor_alltoallw,  ///< the user's derived types straight into MPI_Alltoallw
};

/// All exchanges, in the order in which help texts and tables list them.
std::span<const Exchange> all_exchanges();

/// "alltoallv", "shared", "vendor-pack", "vendor-alltoallw": the same on the command line, in
/// results and in code.
std::string_view name(Exchange exchange);

/// True for the exchanges that leave the datatypes to the installed MPI: the baselines of every
/// comparison. They have no transfers of ours.
bool is_vendor(Exchange exchange);

/// An exchange and, for those that are ours, how packed bytes travel.
struct Method {
  Exchange exchange = Exchange::alltoallv;
  std::optional<dtype::Transfer> transfer = std::nullopt;  ///< none: chosen when a plan is made

  Method(Exchange e, std::optional<dtype::Transfer> t = std::nullopt) : exchange(e), transfer(t) {}
  bool operator==(const Method&) const = default;
};

/// "alltoallv", "alltoallv:one-shot".
std::string name(const Method& method);

/// The method of that name; "alltoallv:auto" is alltoallv. Throws ConfigError that lists the names
/// there are.
Method parse_method(std::string_view name);

}  // namespace halocline::comm
