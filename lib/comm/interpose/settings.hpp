// SPDX-License-Identifier: BSD-3-Clause
// What the user of the interposer asks for, by environment variables.
#pragma once

namespace halocline::interpose {

/// HALOCLINE_MPI, HALOCLINE_MPI_LOG and HALOCLINE_GPU_AWARE_MPI.
struct Settings {
  enum class Mode {
    off,        ///< "off": every call goes to MPI as it is
    automatic,  ///< unset or "auto": the engine takes over what it is measured to be faster at
    engine      ///< "engine": it takes over all that it can, to see what that does
  };
  enum class Log {
    none,     ///< unset
    summary,  ///< "summary": at MPI_Finalize, what went which way
    types,    ///< "types": also each type that is measured
    calls     ///< "calls": also all other types, and each call with a derived one
  };
  enum class GpuAware {
    ask,  ///< unset or "ask": the MPI says, and a message shows, whether it takes device memory
    yes,  ///< "yes": it does
    no    ///< "no": it does not
  };
  Mode mode = Mode::automatic;
  Log log = Log::none;
  GpuAware gpu_aware_mpi = GpuAware::ask;
};

/// Read at the first call; a value that is none of these counts as unset, after a line on standard
/// error. O(1), no lock.
const Settings& settings();

/// Whether this process is the one that tells what is the same for all.
bool is_first_rank();

}  // namespace halocline::interpose
