// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace halocline::dtype::bench {

/// Tells if the running MPI says that it can follow pointers to the memory of CUDA devices. Asked
/// at run time: a program may run with another MPI than it was built with.
bool mpi_knows_cuda();

}  // namespace halocline::dtype::bench
