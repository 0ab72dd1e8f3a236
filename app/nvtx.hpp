// SPDX-License-Identifier: BSD-3-Clause
// Declares the hooks for NVTX, which nvtx.cpp and no_nvtx.cpp define for builds with and without
// NVTX.
#pragma once

#include "support/region.hpp"

namespace halocline::app {

/// Returns hooks that show regions as ranges of NVTX; nullptr if this build has no NVTX. They do
/// nothing unless a profiler is attached.
const RegionHooks* nvtx_hooks();

}  // namespace halocline::app
