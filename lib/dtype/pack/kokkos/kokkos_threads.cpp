// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/kokkos/kokkos_threads.hpp"

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace halocline::dtype {

#if defined(KOKKOS_ENABLE_OPENMP) && KOKKOS_VERSION < 50000
static_assert(kMostKokkosThreads == Kokkos::Impl::OpenMPTraits::MAX_THREAD_COUNT);
#endif

namespace {

// Tells if Kokkos could read the variable. Kokkos ends the program if it cannot.
bool is_number(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return true;
  const auto* const last = text + std::strlen(text);
  int value = 0;
  const auto [end, error] = std::from_chars(text, last, value);
  return error == std::errc{} && end == last && value > 0;
}

}  // namespace

int limit_kokkos_threads(int threads) {
  const int limited = std::min(threads, kMostKokkosThreads);
  if (!is_number("KOKKOS_NUM_THREADS")) unsetenv("KOKKOS_NUM_THREADS");
#ifdef KOKKOS_ENABLE_OPENMP
  omp_set_num_threads(limited);
#endif
  return limited;
}

}  // namespace halocline::dtype
