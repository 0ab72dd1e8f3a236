// SPDX-License-Identifier: BSD-3-Clause
// Replaces an MPI that aborts a program that asks for its support of CUDA memory. The library is
// preloaded.
#include <cstdlib>

extern "C" int MPIX_Query_cuda_support() {
  std::abort();
}
extern "C" int MPIX_GPU_query_support(int /*type*/, int* /*supported*/) {
  std::abort();
}
