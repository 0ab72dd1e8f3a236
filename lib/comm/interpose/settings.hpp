// SPDX-License-Identifier: BSD-3-Clause
// Reads what the user of the interposer asks for by environment variables.
#pragma once

namespace halocline::interpose {

/// Holds the values of HALOCLINE_MPI, HALOCLINE_MPI_LOG and HALOCLINE_GPU_AWARE_MPI.
struct Settings {
  enum class Mode {
    off,        ///< "off": every call goes to MPI unchanged
    automatic,  ///< unset or "auto": the engine does the calls that the rule gives it
    verify,     ///< "verify": as automatic, and MPI packs once more what the engine packed or
                ///< unpacked in host memory, to compare: see verify() in comparison.hpp
    engine      ///< "engine": the engine does all calls that it can, to show their times
  };
  enum class Log {
    none,     ///< unset; with HALOCLINE_MPI=verify this is summary
    summary,  ///< "summary": a table at MPI_Finalize of the calls done by the engine and by MPI
    types,    ///< "types": also each type that was read
    calls     ///< "calls": also each call with a derived type
  };
  enum class GpuAware {
    ask,  ///< unset or "ask": MPI is asked, and a test message shows if it takes device memory
    yes,  ///< "yes": MPI takes device memory
    no    ///< "no": MPI does not take device memory
  };
  Mode mode = Mode::automatic;
  Log log = Log::none;
  GpuAware gpu_aware_mpi = GpuAware::ask;
};

/// Returns the settings. The first call reads the environment. A wrong value counts as unset, and a
/// line on standard error says so. O(1), takes no lock.
const Settings& settings();

/// Tells if HALOCLINE_MPI is verify.
inline bool verifies() {
  return settings().mode == Settings::Mode::verify;
}

/// Tells if this process prints messages that are the same on all ranks: rank 0, or any process
/// before MPI_Init and, without a launcher's variables, after MPI_Finalize.
bool is_first_rank();

}  // namespace halocline::interpose
