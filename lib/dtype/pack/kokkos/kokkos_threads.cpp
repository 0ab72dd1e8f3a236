// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/kokkos/kokkos_threads.hpp"

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cstdlib>

namespace halocline::dtype {

#if defined(KOKKOS_ENABLE_OPENMP) && KOKKOS_VERSION < 50000
static_assert(kMostKokkosThreads == Kokkos::Impl::OpenMPTraits::MAX_THREAD_COUNT);
#endif

int limit_kokkos_threads(int threads) {
  const int limited = std::min(threads, kMostKokkosThreads);
  // Kokkos would read it as well, and end the program if it is no number.
  unsetenv("KOKKOS_NUM_THREADS");
#ifdef KOKKOS_ENABLE_OPENMP
  omp_set_num_threads(limited);
#endif
  return limited;
}

}  // namespace halocline::dtype
