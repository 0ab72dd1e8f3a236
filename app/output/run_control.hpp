// SPDX-License-Identifier: BSD-3-Clause
// Hears what people and batch systems want of a run: files STOP and RELOAD, and signals.
#pragma once

#include <mpi.h>

#include <string>

namespace halocline::app {

/// Notes wishes until all ranks agree on them. While it lives, SIGTERM and SIGUSR1 do not end the
/// program. A SIGTERM two seconds or more after the first one does, as the run may hang.
class RunControl {
 public:
  /// \param folder the place of STOP and RELOAD
  RunControl(std::string folder, MPI_Comm comm);
  RunControl(const RunControl&) = delete;
  RunControl& operator=(const RunControl&) = delete;
  ~RunControl();

  /// Holds what somebody wants some rank to do.
  struct Wishes {
    std::string stop;     ///< who wants the run to stop, in words; empty: nobody
    bool reload = false;  ///< read the parameters again
  };
  /// Returns the wishes since the last call, the same on all ranks, and removes STOP. Collective;
  /// one message of a number.
  Wishes wishes();
  /// Removes RELOAD, when the parameters have been read. Local.
  void end_reload();

 private:
  std::string folder_;
  MPI_Comm comm_;
};

}  // namespace halocline::app
