// SPDX-License-Identifier: BSD-3-Clause
// Finds the system model of this machine, checks that it fits the machine, and chooses the model of
// a run.
#pragma once

#include <mpi.h>

#include <optional>
#include <string>

#include "config.hpp"
#include "dtype/device/resource_cache.hpp"
#include "dtype/model/system_model.hpp"
#include "provenance.hpp"

namespace halocline::app {

/// Returns the path of the model: config.model, else the default path; empty if there is none.
/// Local.
std::string model_path(const Config& config);

/// Returns the description of this job's machine for a model. Host and time are those of this rank.
dtype::ModelProvenance machine_of(const Provenance& provenance);

/// Loads the model that chooses and predicts: that of config.model, or that of the default place.
/// The default model is used if its file exists and one of `methods` leaves something open. Returns
/// nullopt without a model. Sets provenance.model.
///
/// A model of another machine is reported on rank 0's stderr, with the differences.
/// config.force_model accepts it. Otherwise a default model of another machine is not used.
///
/// Collective.
/// \throws ConfigError, the same on all ranks, if the model cannot be read, or config.model is of
/// another machine.
std::optional<dtype::SystemModel> load_model(const Config& config,
                                             const std::vector<comm::Method>& methods,
                                             Provenance& provenance, MPI_Comm comm);

/// Returns "system model: ..." for the lines above a table; empty without a model.
std::string describe_model(const Provenance& provenance);

/// Returns the path of the model, and says in parentheses if there is a model for this machine.
/// Never throws because of the file's contents. Local.
std::string model_state(const Config& config, const Provenance& provenance);

/// Returns the resources of this rank's device; nullptr if it has none.
dtype::ResourceCache* resources_if_any();

}  // namespace halocline::app
