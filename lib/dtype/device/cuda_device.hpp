// SPDX-License-Identifier: BSD-3-Clause
// Between device.cpp and the two answers to it: with and without CUDA.
#pragma once

#include <memory>
#include <string>

#include "dtype/device/device.hpp"

namespace halocline::dtype::detail {

/// The CUDA device that is current, or nullptr and why not.
std::unique_ptr<Device> make_cuda_device(std::string& why_not);

}  // namespace halocline::dtype::detail
