// SPDX-License-Identifier: BSD-3-Clause
// Where a number comes from: source, build, machine, and the configuration that made it.
#pragma once

#include <mpi.h>

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config.hpp"

namespace halocline::app {

/// What is known when the program is built.
struct Build {
  std::string version;
  std::string git;            ///< commit; "unknown" outside of a repository
  std::optional<bool> dirty;  ///< unset where git is unknown
  std::string compiler;
  std::string flags;
  std::string type;  ///< CMake's build type
};

const Build& build();

/// "0.1.0 (git 0123abcd, dirty)".
std::string version_line();

/// The system model by which a run chooses transfers.
struct ModelUsed {
  std::string path, time, host, git;
  std::string differences;  ///< in what it is of another machine; used by force
};

struct Provenance {
  std::string mpi_library;  ///< first line of MPI_Get_library_version
  std::string mpi_standard;
  bool interposed = false;  ///< another library stands in front of MPI, as ours may
  std::string kokkos_version;
  std::vector<std::string> kokkos_spaces;
  std::string cuda;                ///< the device's driver; empty without a device
  std::vector<std::string> cpus;   ///< models of the ranks' processors, each once, in rank order
  std::vector<std::string> gpus;   ///< names of the ranks' devices, each once, in rank order
  std::vector<std::string> hosts;  ///< each once, in rank order
  std::string gpu_aware_mpi;  ///< of rank 0, with how it is known; empty: no fields on a device
  std::string binding;        ///< hardware threads that each rank may use, in words
  std::string time;           ///< UTC, ISO 8601
  std::map<std::string, std::string>
      environment;  ///< OMPI_MCA_*, OMP_*, KOKKOS_*, UCX_*, HALOCLINE_*, CUDA_VISIBLE_DEVICES
  std::optional<ModelUsed> model;  ///< unset: none
  std::string config = "{}";       ///< effective_config_json()
};

/// Without `model`. Collective; the same on every rank but for `time` and `environment`, which are
/// each rank's own.
Provenance gather_provenance(const Config& config, MPI_Comm comm);

/// The "provenance" object of a result record, build() included.
nlohmann::ordered_json to_json(const Provenance& provenance);

}  // namespace halocline::app
