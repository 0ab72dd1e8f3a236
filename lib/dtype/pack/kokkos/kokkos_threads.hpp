// SPDX-License-Identifier: BSD-3-Clause
// The number of threads that Kokkos may be started with.
#pragma once

namespace halocline::dtype {

/// The most threads that Kokkos' OpenMP back end has room for. It does not check: a program with
/// more threads writes past the end of an array.
inline constexpr int kMostKokkosThreads = 512;

/// Prepares OpenMP for Kokkos::initialize(), which first starts all threads that OMP_NUM_THREADS
/// names, whatever its settings say. Unsets KOKKOS_NUM_THREADS if it is no number, at which Kokkos
/// would end the program.
/// Call it before Kokkos::initialize(), from one thread. O(1).
/// \param threads how many threads are wanted, at least 1
/// \return how many threads to give to Kokkos: `threads`, at most kMostKokkosThreads
int limit_kokkos_threads(int threads);

}  // namespace halocline::dtype
