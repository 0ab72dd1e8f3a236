// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace halocline::dtype::bench {

/// Whether the MPI that runs says that it can follow pointers to the memory of CUDA devices. Asked
/// at run time: a program may run with another MPI than it was built with.
bool mpi_knows_cuda();

}  // namespace halocline::dtype::bench
