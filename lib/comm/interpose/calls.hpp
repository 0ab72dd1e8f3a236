// SPDX-License-Identifier: BSD-3-Clause
// What the interposer did with the application's calls, for its user.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "comm/interpose/settings.hpp"

namespace halocline::interpose {

enum class Call {
  pack,
  unpack,
  send,
  recv,
  isend,
  irecv,
  sendrecv,
  sendrecv_recv,  ///< its other side
  send_init,
  recv_init,
  alltoallv,
  alltoallw,
  neighbor_alltoallw
};
inline constexpr int kCalls = static_cast<int>(Call::neighbor_alltoallw) + 1;

enum class Path { mpi, engine };

/// What a call is about: so many instances of a type, or so many bytes of this type and others.
struct Subject {
  MPI_Datatype type;
  std::int64_t count;
  std::int64_t bytes = -1;  ///< -1: those of `count` instances

  static Subject of_several(MPI_Datatype first, std::int64_t bytes) { return {first, 0, bytes}; }
};

/// Counts a call, and tells of it if that is wanted. Thread-safe.
void note(Call call, Path path, const Subject& subject, double seconds) noexcept;
void note_measurement(double seconds) noexcept;

/// Does `measure`, which finds out who is faster at something, and counts that.
template <class F>
auto timed_measurement(F&& measure) {
  const double start = PMPI_Wtime();
  auto out = measure();
  note_measurement(PMPI_Wtime() - start);
  return out;
}

/// Tells, if that is wanted, how a type is handled from now on: `decision` is what by whom.
void note_type(MPI_Datatype type, const char* decision) noexcept;

/// The table of all that was noted, on standard error of this rank.
void print_summary() noexcept;

/// Does `action`, which returns what MPI returned, for what is of a type that is known.
template <class F>
int noted(Call call, Path path, const Subject& subject, F&& action) {
  if (settings().log == Settings::Log::none) return action();
  const double start = PMPI_Wtime();
  const int code = action();
  note(call, path, subject, PMPI_Wtime() - start);
  return code;
}

}  // namespace halocline::interpose
