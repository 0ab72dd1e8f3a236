// SPDX-License-Identifier: BSD-3-Clause
// The one macro through which every MPI call of the libraries and the app goes.
#pragma once

#include <mpi.h>

#include "dtype/support/error.hpp"

/// Evaluates an MPI call once and throws MpiError unless it returned MPI_SUCCESS; active in every
/// build. Whether MPI returns at all after an error is the application's choice of error handler:
/// the libraries work under either.
#define HALOCLINE_MPI(call)                                                 \
  do {                                                                      \
    if (const int halocline_rc = (call); halocline_rc != MPI_SUCCESS)       \
      throw ::halocline::MpiError(halocline_rc, #call, __FILE__, __LINE__); \
  } while (false)
