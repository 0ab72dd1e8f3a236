// SPDX-License-Identifier: BSD-3-Clause
// Limits the number of threads that Kokkos is started with.
#pragma once

namespace halocline::dtype {

/// Is the most threads that Kokkos' OpenMP back end has room for. Kokkos does not check: a program
/// with more threads writes past the end of an array.
inline constexpr int kMostKokkosThreads = 512;

/// Prepares OpenMP for Kokkos::initialize(), which starts all threads that OMP_NUM_THREADS names,
/// whatever its settings say.
///
/// Unsets KOKKOS_NUM_THREADS if it is no number: Kokkos would end the program. Call it before
/// Kokkos::initialize(), from one thread. O(1).
/// \param threads number of threads wanted, at least 1
/// \return number of threads to give to Kokkos: `threads`, at most kMostKokkosThreads
int limit_kokkos_threads(int threads);

}  // namespace halocline::dtype
