// SPDX-License-Identifier: BSD-3-Clause
// Defines the macro that checks every MPI call of the libraries and the app.
#pragma once

#include <mpi.h>

#include "support/error.hpp"

/// Evaluates an MPI call once, in every build. Throws MpiError unless the call returns MPI_SUCCESS.
/// The application's error handler decides if MPI returns at all after an error. The libraries work
/// with any error handler.
#define HALOCLINE_MPI(call)                                                 \
  do {                                                                      \
    if (const int halocline_rc = (call); halocline_rc != MPI_SUCCESS)       \
      throw ::halocline::MpiError(halocline_rc, #call, __FILE__, __LINE__); \
  } while (false)
