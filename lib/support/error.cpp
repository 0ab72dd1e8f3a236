// SPDX-License-Identifier: BSD-3-Clause
#include "support/error.hpp"

#include <mpi.h>

namespace halocline {

namespace {

std::string describe(int code, const char* call, const char* file, int line) {
  char text[MPI_MAX_ERROR_STRING] = "unknown error code";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return std::string("MPI call failed (") + call + ": " + text + "): see " + file + ":" +
         std::to_string(line);
}

}  // namespace

MpiError::MpiError(int code, const char* call, const char* file, int line)
    : EnvironmentError(describe(code, call, file, line)), code_(code) {}

CudaError::CudaError(int code, const char* name, const char* text, const char* call,
                     const char* file, int line)
    : EnvironmentError(std::string("CUDA call failed (") + call + ": " + name + ", " + text +
                       "): see " + file + ":" + std::to_string(line)),
      code_(code) {}

}  // namespace halocline
