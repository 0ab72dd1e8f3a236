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

/// Returns the step of a folder of this name, -1 for names that are none of a checkpoint.
std::int64_t step_of_checkpoint(const std::string& name);

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

/// Returns the bytes of each file of a field.
std::int64_t bytes_of_field(const Checkpoint& checkpoint);

/// Returns the fault of a file's size; empty if there is none. Local.
std::string fault_of_sizes(const Checkpoint& checkpoint);

/// Tells if checkpoint.json can be read and all files have their sizes. Local.
bool is_complete(const std::string& folder);

}  // namespace halocline::app
