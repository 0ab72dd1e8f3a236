// SPDX-License-Identifier: BSD-3-Clause
// The ways to exchange, by name.
#pragma once

#include <span>
#include <string_view>

namespace halocline::comm {

/// How an ExchangePlan moves the bytes of its jobs.
enum class Method {
  alltoallv,         ///< our pack plans, MPI_Alltoallv, our unpack; self traffic stays out of MPI
  vendor_pack,       ///< MPI_Pack per job, MPI_Alltoallv, MPI_Unpack: the case study of [PEA21]
                     ///< section 6.4
  vendor_alltoallw,  ///< the user's derived types straight into MPI_Alltoallw
};

/// All methods, in the order in which help texts and tables list them.
std::span<const Method> all_methods();

/// "alltoallv", "vendor-pack", "vendor-alltoallw": the same on the command line, in results and in
/// code.
std::string_view name(Method method);

/// The method of that name. Throws ConfigError that lists the names there are.
Method parse_method(std::string_view name);

/// True for the methods that leave the datatypes to the installed MPI: the baselines of every
/// comparison.
bool is_vendor(Method method);

}  // namespace halocline::comm
