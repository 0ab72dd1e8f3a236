// SPDX-License-Identifier: BSD-3-Clause
#include "tools.hpp"

#include <Kokkos_Core.hpp>

#include "nvtx.hpp"
#include "support/region.hpp"

namespace halocline::app {

namespace {

constexpr RegionHooks kKokkosTools{[](const char* name) { Kokkos::Profiling::pushRegion(name); },
                                   [] { Kokkos::Profiling::popRegion(); }};
constexpr RegionHooks kBoth{[](const char* name) {
                              kKokkosTools.push(name);
                              nvtx_hooks()->push(name);
                            },
                            [] {
                              nvtx_hooks()->pop();
                              kKokkosTools.pop();
                            }};

}  // namespace

ToolsConnection::ToolsConnection() {
  const auto* nvtx = nvtx_hooks();
  if (!Kokkos::Profiling::profileLibraryLoaded())
    set_region_hooks(nvtx);
  else
    set_region_hooks(nvtx != nullptr ? &kBoth : &kKokkosTools);
}

ToolsConnection::~ToolsConnection() {
  set_region_hooks(nullptr);
}

}  // namespace halocline::app
