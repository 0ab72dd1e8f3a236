// SPDX-License-Identifier: BSD-3-Clause
// What the interposer did with the application's calls, for its user.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <exception>
#include <string>

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

/// Counts the time of its life as spent on finding out who is faster at something.
class NotedMeasurement {
 public:
  NotedMeasurement() = default;
  NotedMeasurement(const NotedMeasurement&) = delete;
  NotedMeasurement& operator=(const NotedMeasurement&) = delete;
  ~NotedMeasurement();

 private:
  double start_ = PMPI_Wtime();
};

/// What becomes of a type that was committed.
enum class Fate {
  committed,
  measured,  ///< by MPI and the engine
  equal,     ///< goes by what is known of another one
  taken,     ///< by the engine, without measuring
  left       ///< to MPI, without measuring
};
inline constexpr int kFates = static_cast<int>(Fate::left) + 1;
/// Counts a type. Thread-safe.
void note_fate(Fate fate) noexcept;

/// Prints how a type is handled from now on; `decision` tells what is done by whom. Prints a line
/// once where types alone are logged.
void tell_of_type(MPI_Datatype type, const std::string& decision);

/// Likewise, if that is wanted; `decision()` is a std::string.
template <class F>
void note_type(MPI_Datatype type, F&& decision) noexcept {
  if (settings().log < Settings::Log::types) return;
  try {
    tell_of_type(type, decision());
  } catch (const std::exception&) {
    // No memory for telling of it.
  }
}

/// The table of all that was noted, on standard error of this rank, at once.
void print_summary() noexcept;

/// Does `action`, which returns what MPI returned and may still change `path`, for what is of a
/// type that is known.
template <class F>
int noted(Call call, const Path& path, const Subject& subject, F&& action) {
  if (settings().log == Settings::Log::none) return action();
  const double start = PMPI_Wtime();
  const int code = action();
  note(call, path, subject, PMPI_Wtime() - start);
  return code;
}

}  // namespace halocline::interpose
