// SPDX-License-Identifier: BSD-3-Clause
// Between tools.cpp and the two answers to it: with and without NVTX.
#pragma once

#include "dtype/support/region.hpp"

namespace halocline::app {

/// Regions as ranges of NVTX, which does nothing unless a profiler is attached; nullptr if this
/// build has none.
const RegionHooks* nvtx_hooks();

}  // namespace halocline::app
