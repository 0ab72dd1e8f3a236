// SPDX-License-Identifier: BSD-3-Clause
// The system model of this machine: where it is, whether it is one, and which one a run uses.
#pragma once

#include <mpi.h>

#include <optional>
#include <string>

#include "config.hpp"
#include "dtype/device/resource_cache.hpp"
#include "dtype/select/system_model.hpp"
#include "provenance.hpp"

namespace halocline::app {

/// The place of the model: config.model, else the default one; empty if there is none. Local.
std::string model_path(const Config& config);

/// What a model of this job's machine says of it; host and time are those of this rank.
dtype::ModelProvenance machine_of(const Provenance& provenance);

/// The model that chooses and predicts: of config.model, or of the default place if there is a file
/// and one of `methods` leaves something open. nullopt: there is none. Says on rank 0's stderr in
/// what a model is of another machine: config.force_model accepts it; else one of the default place
/// is not used. Sets provenance.model.
///
/// Throws ConfigError, the same on all ranks, if the model cannot be read, or config.model is of
/// another machine. Collective.
std::optional<dtype::SystemModel> load_model(const Config& config,
                                             const std::vector<comm::Method>& methods,
                                             Provenance& provenance, MPI_Comm comm);

/// "system model: ...": for the lines above a table; empty without a model.
std::string describe_model(const Provenance& provenance);

/// The place of the model, and in parentheses whether there is one for this machine. Never throws
/// for what is in the file. Local.
std::string model_state(const Config& config, const Provenance& provenance);

/// The resources of this rank's device; nullptr if it has none.
dtype::ResourceCache* resources_if_any();

}  // namespace halocline::app
