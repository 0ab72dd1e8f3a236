// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/bench/device/mpi_twin.hpp"

#include <dlfcn.h>
#include <mpi.h>

namespace halocline::dtype::bench {

// Asks the same questions in the same order as comm::ask_mpi_for_gpu_awareness(), which this
// library does not know. The caller has a device.
bool mpi_knows_cuda() {
  using Query = int();
  using GpuQuery = int(int, int*);
  constexpr int kCuda = 0;  // MPICH's MPIX_GPU_SUPPORT_CUDA
  int supported = 0;
  auto* const ask = reinterpret_cast<GpuQuery*>(dlsym(RTLD_DEFAULT, "MPIX_GPU_query_support"));
  if (ask != nullptr && ask(kCuda, &supported) == MPI_SUCCESS) return supported == 1;
  auto* const query = reinterpret_cast<Query*>(dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"));
  return query != nullptr && query() == 1;
}

}  // namespace halocline::dtype::bench
