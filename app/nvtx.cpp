// SPDX-License-Identifier: BSD-3-Clause
#include "nvtx.hpp"

#include <nvtx3/nvToolsExt.h>

namespace halocline::app {

const RegionHooks* nvtx_hooks() {
  static constexpr RegionHooks kHooks{[](const char* name) { nvtxRangePushA(name); },
                                      [] { nvtxRangePop(); }};
  return &kHooks;
}

}  // namespace halocline::app
