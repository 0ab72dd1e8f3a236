// SPDX-License-Identifier: BSD-3-Clause
// Keeps errors for halocline_last_error(). The other functions are in plans.cpp, messages.cpp,
// gathers.cpp, packing.cpp, describe.cpp and memory.cpp.
#include "comm/c/halocline.h"

#include <cstdio>

#include "comm/c/errors.hpp"

namespace halocline::c {

namespace {

// Has no destructor: the text must outlive all other objects of the thread.
thread_local char last_error[2048];

}  // namespace

int fail(int code, const char* text) noexcept {
  std::snprintf(last_error, sizeof last_error, "%s", text);
  return code;
}

void require_mpi() {
  int is_initialized = 0, is_finalized = 0;
  MPI_Initialized(&is_initialized);
  MPI_Finalized(&is_finalized);
  require(is_initialized != 0 && is_finalized == 0,
          "MPI is not running: call between MPI_Init and MPI_Finalize");
}

}  // namespace halocline::c

int halocline_version(void) {
  return HALOCLINE_VERSION;
}

const char* halocline_last_error(void) {
  return halocline::c::last_error;
}
