// SPDX-License-Identifier: BSD-3-Clause
// The one family of errors. Message grammar: "problem (cause): what to do". A datatype that cannot
// be planned and a missing measurement are values, not errors: see Result.
#pragma once

#include <stdexcept>
#include <string>
#include <variant>

namespace halocline {

/// Base of every error that Halocline throws.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The user's input cannot be used: a flag, a config file, a path, a type expression, a list of
/// jobs, a size that does not fit into memory. Exit code 2.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// The environment failed while working: a disk that is full, an allocation or an MPI call that
/// failed. Exit code 3.
class EnvironmentError : public Error {
 public:
  using Error::Error;
};

/// An MPI call returned something other than MPI_SUCCESS. Exit code 3.
class MpiError : public EnvironmentError {
 public:
  MpiError(int code, const char* call, const char* file, int line);
  /// The return code of the call.
  int code() const noexcept { return code_; }

 private:
  int code_;
};

/// A device has no memory left for what was to be begun. Exit code 3.
class NoDeviceMemory : public EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

/// A CUDA call failed, but for lack of memory. Exit code 3.
class CudaError : public EnvironmentError {
 public:
  CudaError(int code, const char* name, const char* text, const char* call, const char* file,
            int line);
  /// The cudaError_t of the call.
  int code() const noexcept { return code_; }

 private:
  int code_;
};

/// A legal MPI datatype for which there is no plan of ours; what() names the combiner and the
/// reason. It is returned inside a Result, and the caller lets MPI handle the type.
class UnsupportedDatatype : public Error {
 public:
  using Error::Error;
};

/// Either the T that was asked for or the reason why this datatype has none.
template <class T>
using Result = std::variant<T, UnsupportedDatatype>;

}  // namespace halocline
