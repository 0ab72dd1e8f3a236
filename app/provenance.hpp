// SPDX-License-Identifier: BSD-3-Clause
// Records where a number comes from: source, build, machine, and configuration.
#pragma once

#include <mpi.h>

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config.hpp"

namespace halocline::app {

/// Holds the facts that are known when the program is built.
struct Build {
  std::string version;
  std::string git;            ///< commit; "unknown" outside of a repository
  std::optional<bool> dirty;  ///< unset if git is unknown
  std::string compiler;
  std::string flags;
  std::string type;  ///< CMake's build type
};

const Build& build();

/// Returns version and revision: "0.1.0 (git 0123abcd, dirty)".
std::string version_line();

/// Names the system model by which a run chooses transfers.
struct ModelUsed {
  std::string path, time, host, git;
  std::string differences;  ///< differences between the model's machine and this one, if the model
                            ///< was forced
};

/// Says where a record comes from, beside the build. record_fields.cpp explains the members.
struct Provenance {
  std::string mpi_library, mpi_standard;
  bool interposed = false;
  std::string kokkos_version;
  std::vector<std::string> kokkos_spaces;
  std::string cuda;                            ///< empty without a device
  std::vector<std::string> cpus, gpus, hosts;  ///< each name once, in rank order
  std::string gpu_aware_mpi;  ///< answer of rank 0 and its source; empty: no fields on a device
  std::string binding;
  std::string time;  ///< UTC, ISO 8601
  std::map<std::string, std::string> environment;
  std::optional<ModelUsed> model;
  std::string config = "{}";  ///< result of effective_config_json()
};

/// Gathers the provenance of all ranks; leaves `model` unset. The result is the same on every rank,
/// except for `time` and `environment`, which are each rank's own. Collective.
Provenance gather_provenance(const Config& config, MPI_Comm comm);

/// Returns the "provenance" object of a result record, build() included.
nlohmann::ordered_json to_json(const Provenance& provenance);

}  // namespace halocline::app
