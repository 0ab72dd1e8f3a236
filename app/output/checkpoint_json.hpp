// SPDX-License-Identifier: BSD-3-Clause
// Names the folders of checkpoints, and turns their descriptions into JSON and back.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "checkpoint.hpp"

namespace halocline::app {

/// Returns the name of a checkpoint's folder: checkpoint-00000020.
std::string checkpoint_name(std::int64_t step);

/// Returns the checkpoints of an output folder by their steps, as their names say. Local.
std::map<std::int64_t, std::string> checkpoints_in(const std::string& folder);

/// Returns the text of checkpoint.json.
std::string checkpoint_json(const Checkpoint& checkpoint);

/// Reads the text of checkpoint.json in a folder.
/// \throws ConfigError if it is damaged or has a newer format
Checkpoint parse_checkpoint(const std::string& text, const std::string& folder);

/// Tells if the seed and the parameters of the physics are those of the checkpoint. A parameter
/// that is missing there has its default.
bool same_parameters(const Checkpoint& checkpoint, const Config& config);

/// Reads the file checkpoint.json of a folder. Local.
/// \throws ConfigError if it cannot be read
std::string text_of_checkpoint(const std::string& folder);

}  // namespace halocline::app
