// SPDX-License-Identifier: BSD-3-Clause
// Replaces twins.cu if the benchmarks are built without CUDA.
#include "dtype/bench/device/twins.hpp"

namespace halocline::dtype::bench {

std::unique_ptr<Twins> make_twins(const Device&, Device::Stream) {
  return nullptr;
}

}  // namespace halocline::dtype::bench
