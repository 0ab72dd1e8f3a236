// SPDX-License-Identifier: BSD-3-Clause
// What this process runs on, in the words by which results and system models are told apart.
#pragma once

#include <string>

namespace halocline {

/// What the kernel calls the processor: by name on x86, by numbers of its maker on Arm.
std::string cpu_model();

/// The first line of MPI_Get_library_version. Throws MpiError.
std::string mpi_library();

}  // namespace halocline
