// SPDX-License-Identifier: BSD-3-Clause
// Checks calls of CUDA's run-time library.
#pragma once

#include <cuda_runtime_api.h>

#include "support/error.hpp"

namespace halocline::detail {

inline void check_cuda(cudaError_t code, const char* call, const char* file, int line) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // otherwise the check of a later launch would find the error again
  const CudaError error(code, cudaGetErrorName(code), cudaGetErrorString(code), call, file, line);
  if (code == cudaErrorMemoryAllocation) throw NoDeviceMemory(error.what());
  throw error;
}

/// Makes a device current for this thread during its own lifetime.
class OnDevice {
 public:
  explicit OnDevice(int device) : device_(device) {
    check_cuda(cudaGetDevice(&before_), "cudaGetDevice", __FILE__, __LINE__);
    if (before_ != device_) check_cuda(cudaSetDevice(device_), "cudaSetDevice", __FILE__, __LINE__);
  }
  ~OnDevice() {
    if (before_ != device_) cudaSetDevice(before_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int device_, before_ = 0;
};

}  // namespace halocline::detail

/// Evaluates a call of CUDA's run-time library once. Throws CudaError or NoDeviceMemory unless it
/// succeeds.
#define HALOCLINE_CUDA(call) ::halocline::detail::check_cuda((call), #call, __FILE__, __LINE__)
