// SPDX-License-Identifier: BSD-3-Clause
// Tells profilers which part of the work is under way.
#pragma once

namespace halocline::app {

/// Connects regions (support/region.hpp) with profilers while it lives. They become regions
/// of Kokkos Tools if a tool is loaded, and ranges of NVTX in builds with CUDA. Kokkos must be
/// initialised. Local.
class ToolsConnection {
 public:
  ToolsConnection();
  ToolsConnection(const ToolsConnection&) = delete;
  ToolsConnection& operator=(const ToolsConnection&) = delete;
  ~ToolsConnection();
};

}  // namespace halocline::app
