// SPDX-License-Identifier: BSD-3-Clause
// Declares the function that makes the CUDA device. pack/cuda/cuda_device.cu defines it, or
// no_cuda.cpp in builds without CUDA.
#pragma once

#include <memory>
#include <string>

#include "dtype/device/device.hpp"

namespace halocline::dtype::detail {

/// Returns the CUDA device that is current. Without one, returns nullptr and sets `why_not`.
std::unique_ptr<Device> make_cuda_device(std::string& why_not);

}  // namespace halocline::dtype::detail
