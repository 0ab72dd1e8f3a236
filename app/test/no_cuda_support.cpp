// SPDX-License-Identifier: BSD-3-Clause
// Preloaded: an MPI that stops a program that asks whether it takes memory of CUDA.
#include <cstdlib>

extern "C" int MPIX_Query_cuda_support() {
  std::abort();
}
extern "C" int MPIX_GPU_query_support(int /*type*/, int* /*supported*/) {
  std::abort();
}
