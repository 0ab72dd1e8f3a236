// SPDX-License-Identifier: BSD-3-Clause
// In place of nvtx.cpp where the build has no CUDA, or its toolkit no NVTX.
#include "nvtx.hpp"

namespace halocline::app {

const RegionHooks* nvtx_hooks() {
  return nullptr;
}

}  // namespace halocline::app
