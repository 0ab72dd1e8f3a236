// SPDX-License-Identifier: BSD-3-Clause
// Keeps all that a run needs to go on, in folders that other programs can read and write.
// results/checkpoints.md describes them.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/halo/direction.hpp"
#include "config.hpp"
#include "fields.hpp"

namespace halocline::app {

/// Describes a checkpoint, as its checkpoint.json does.
struct Checkpoint {
  /// Describes the file of one field.
  struct File {
    std::string field;                   ///< name of the field
    std::string name;                    ///< name of the file in the folder
    std::optional<std::uint32_t> crc32;  ///< of the file; unset: not checked
  };

  std::string folder;
  std::string physics;
  std::int64_t step = 0;  ///< steps done
  comm::Int3 global{};    ///< points along x, y and z
  Element element = Element::float64;
  std::vector<File> files;                  ///< in the order of the physics' fields
  bool foreign = false;                     ///< another program made the state of step 0
  std::vector<double> state;                ///< Physics::state(); empty: a new begin
  std::optional<std::uint64_t> state_hash;  ///< of all fields; unset: not checked
  std::string settings = "{}";              ///< settings_json() of the run
};

/// Returns the folders of checkpoints that `path` means, newest first: `path` itself if it is a
/// checkpoint, else the checkpoints in it. Local.
/// \throws ConfigError if there is none
std::vector<std::string> checkpoints_of(const std::string& path);

/// Reads checkpoint.json of a folder. Local.
/// \throws ConfigError if it is damaged or has a newer format
Checkpoint read_checkpoint(const std::string& folder);

/// Writes the owned points in host memory, and checkpoint.json, to checkpoint.folder. The folder
/// has its name when all is on the disk; a folder of this name is replaced then. Sets the checksums
/// of `checkpoint`. Collective.
/// \throws EnvironmentError on all ranks if something cannot be written, or if the files do not
/// hold the fields; no draft is left then
template <class T>
void write_checkpoint(Checkpoint& checkpoint, const Domain& domain, const FieldSet<T>& fields,
                      MPI_Comm comm);

/// Removes the checkpoints of an output folder that are older than the newest two complete ones up
/// to `step`. Local.
void remove_old_checkpoints(const std::string& folder, std::int64_t step);

/// Renames the checkpoints of an output folder for later steps than `step`: they get the suffix
/// ".abandoned". A run that went on from an older checkpoint would count them as its own. Local.
/// \return a line that names them; empty if there are none
/// \throws EnvironmentError if one cannot be renamed
std::string set_aside_checkpoints(const std::string& folder, std::int64_t step);

/// Removes the drafts of checkpoints and snapshots that killed runs have left in an output folder.
/// A checkpoint that was about to be replaced gets its name back. Local.
void remove_leftovers(const std::string& folder);

/// Holds the checkpoint that was read, and a line for each damaged newer one.
struct Restored {
  Checkpoint checkpoint;
  std::vector<std::string> damaged;
};

/// Reads the newest good checkpoint that `path` means into the owned points in host memory. Checks
/// the checksum of each file. Collective.
/// \param names names of the domain's fields
/// \throws ConfigError on all ranks if no checkpoint is good
/// \throws ConfigError on all ranks if a checkpoint has another physics, element, extent or other
/// fields than the run
template <class T>
Restored restore(const std::string& path, const Config& config, const Domain& domain,
                 const std::vector<std::string>& names, const FieldSet<T>& fields, MPI_Comm comm);

}  // namespace halocline::app
