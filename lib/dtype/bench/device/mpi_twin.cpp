// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/bench/device/mpi_twin.hpp"

#include <dlfcn.h>

namespace halocline::dtype::bench {

bool mpi_knows_cuda() {
  using Query = int();
  auto* const query = reinterpret_cast<Query*>(dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"));
  return query != nullptr && query() == 1;
}

}  // namespace halocline::dtype::bench
