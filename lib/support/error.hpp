// SPDX-License-Identifier: BSD-3-Clause
// Defines all errors that Halocline throws. A message reads "problem (cause): what to do". A
// datatype that cannot be planned and a missing measurement are values, not errors: see Result.
#pragma once

#include <stdexcept>
#include <string>
#include <variant>

namespace halocline {

/// Is the base of every error that Halocline throws.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Reports input of the user that cannot be used: a flag, a config file, a path, a type expression,
/// a list of jobs, a size that does not fit into memory. The exit code is 2.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// Reports that the environment failed while working: a full disk, or an allocation or MPI call
/// that failed. The exit code is 3.
class EnvironmentError : public Error {
 public:
  using Error::Error;
};

/// Reports an MPI call that did not return MPI_SUCCESS. The exit code is 3.
class MpiError : public EnvironmentError {
 public:
  MpiError(int code, const char* call, const char* file, int line);
  /// Returns the error code that the MPI call returned.
  int code() const noexcept { return code_; }

 private:
  int code_;
};

/// Reports that a device has no memory left for the work that was to begin. The exit code is 3.
class NoDeviceMemory : public EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

/// Reports a CUDA call that failed for any reason but lack of memory. The exit code is 3.
class CudaError : public EnvironmentError {
 public:
  CudaError(int code, const char* name, const char* text, const char* call, const char* file,
            int line);
  /// Returns the cudaError_t of the call.
  int code() const noexcept { return code_; }

 private:
  int code_;
};

/// Describes a legal MPI datatype for which Halocline has no plan. what() names the combiner and
/// the reason. Functions return it inside a Result; the caller then lets MPI handle the type.
class UnsupportedDatatype : public Error {
 public:
  using Error::Error;
};

/// Holds either the T that the caller asked for, or the reason why the datatype has none.
template <class T>
using Result = std::variant<T, UnsupportedDatatype>;

}  // namespace halocline
