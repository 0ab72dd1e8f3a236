// SPDX-License-Identifier: BSD-3-Clause
// Looks after a run between its steps: writes what people look at, keeps checkpoints, and obeys
// those who want to stop it.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config.hpp"
#include "fields.hpp"
#include "physics.hpp"

namespace halocline::app {

/// Returns the names of a physics' fields. Fields without a name are field0, field1, ...
std::vector<std::string> names_of_fields(const PhysicsInfo& physics, int fields);

/// Tells if a run with this configuration writes files of its own, beside its records.
bool writes_files(const Config& config);

/// Refuses an output folder that holds another run, and names of fields that are not there: what
/// --dry-run can check without fields. Collective.
/// \throws ConfigError on all ranks
void check_files(const Config& config, MPI_Comm comm);

/// Looks after one run. All members are collective.
template <class T>
class RunFiles {
 public:
  /// Makes the output folder, if the run writes something. From here on, signals to stop are noted.
  /// Keeps references to all arguments.
  /// \throws ConfigError if the folder holds another run, or names of fields are wrong
  /// \throws EnvironmentError if the folder cannot be made
  RunFiles(const Config& config, const Domain& domain, const PhysicsInfo& info, Physics<T>& physics,
           MPI_Comm comm);
  RunFiles(const RunFiles&) = delete;
  RunFiles& operator=(const RunFiles&) = delete;
  ~RunFiles();

  /// Returns the path of the output folder; empty if the run writes nothing.
  const std::string& folder() const;

  /// Says where a run begins.
  struct Restart {
    std::int64_t step = 0;  ///< steps that are done
    bool is_new = true;     ///< no run was there before, only fields perhaps
    bool changes = false;   ///< the parameters are not those of the checkpoint
    bool foreign = false;   ///< another program made the state of step 0
  };

  /// Reads the checkpoint of config.restart, if there is one, into the fields in host memory and
  /// into the physics. Says on stdout what was read, and on stderr what is damaged.
  /// \throws ConfigError on all ranks if no checkpoint can be used
  Restart restart(const FieldSet<T>& fields);

  /// Says why a run ends early.
  struct End {
    std::string why;      ///< "file STOP", "SIGTERM"; empty if `problem` is set
    std::string problem;  ///< a value that is not finite, and its place
  };

  /// Writes all that is due after `step` steps, or before the first one. Copies the fields to host
  /// memory if it needs them there. The first call sets checkpoints of later steps aside.
  /// \param fields working fields, whose ghosts may be old
  /// \param set_all_ghosts sets the ghosts of `fields` in all directions
  /// \return nullopt if the run goes on
  std::optional<End> after_step(std::int64_t step, std::int64_t substep, const FieldSet<T>& fields,
                                const std::function<void()>& set_all_ghosts);

 private:
  class Implementation;
  std::unique_ptr<Implementation> self_;
};

}  // namespace halocline::app
