// SPDX-License-Identifier: BSD-3-Clause
// What the program asks Kokkos for: only who runs kernels has to compile with it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dtype/pack/packer.hpp"

namespace halocline::app {

/// Such as 4.7.0.
std::string kokkos_version();

/// Names of its execution spaces: the default one first, that of the host, Serial.
std::vector<std::string> kokkos_spaces();

/// Threads that run kernels on the host. Kokkos must be initialised.
int kokkos_threads();

/// One that packs by kernels on the host, with all these threads. Kokkos must be initialised.
std::unique_ptr<dtype::Packer> make_kokkos_packer();

}  // namespace halocline::app
