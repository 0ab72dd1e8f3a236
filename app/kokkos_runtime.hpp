// SPDX-License-Identifier: BSD-3-Clause
// Asks Kokkos for its facts. Only files with kernels have to compile with Kokkos.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dtype/pack/packer.hpp"

namespace halocline::app {

/// Returns the version of Kokkos, such as "4.7.0".
std::string kokkos_version();

/// Returns the names of Kokkos's execution spaces: the default one, the default one of the host,
/// Serial.
std::vector<std::string> kokkos_spaces();

/// Returns the number of threads that run kernels on the host. Kokkos must be initialised.
int kokkos_threads();

/// Makes a packer that packs by kernels on the host, with all threads of kokkos_threads(). Kokkos
/// must be initialised.
std::unique_ptr<dtype::Packer> make_kokkos_packer();

}  // namespace halocline::app
