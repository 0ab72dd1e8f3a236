// SPDX-License-Identifier: BSD-3-Clause
// Replaces pack/cuda/cuda_device.cu in builds without CUDA.
#include "dtype/device/cuda_device.hpp"

namespace halocline::dtype::detail {

std::unique_ptr<Device> make_cuda_device(std::string& why_not) {
  why_not = "built without CUDA";
  return nullptr;
}

}  // namespace halocline::dtype::detail
