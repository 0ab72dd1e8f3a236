// SPDX-License-Identifier: BSD-3-Clause
// Counts and logs the application's calls of MPI, for the user of the interposer.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <exception>
#include <string>

#include "comm/interpose/settings.hpp"

namespace halocline::interpose {

/// Names a call that is counted.
enum class MpiCall {
#define HALOCLINE_PACKING(Name, name, ...) name,
#define HALOCLINE_MESSAGE HALOCLINE_PACKING
#define HALOCLINE_SECOND_MESSAGE(name, text) name,
#define HALOCLINE_COLLECTIVE HALOCLINE_PACKING
#include "comm/interpose/calls.def"
};
/// Tells if a call makes a persistent request.
constexpr bool is_persistent(MpiCall call) {
  return call == MpiCall::send_init || call == MpiCall::recv_init;
}
/// Names who did a call.
enum class Path { mpi, engine };

/// Describes the data of a call: `count` instances of a type, or `bytes` bytes of several types.
struct Subject {
  MPI_Datatype type;
  std::int64_t count;
  std::int64_t bytes = -1;  ///< packed bytes; -1: the bytes of `count` instances

  /// Returns the subject of a call with several types. `first` is one of them.
  static Subject of_several(MPI_Datatype first, std::int64_t bytes) { return {first, 0, bytes}; }
};

/// Counts a call. With HALOCLINE_MPI_LOG=calls, also prints a line for it. Thread-safe.
void note(MpiCall call, Path path, const Subject& subject, double seconds) noexcept;

/// Counts its lifetime as time spent on reading types and on comparing them with MPI.
class NotedReading {
 public:
  NotedReading() = default;
  NotedReading(const NotedReading&) = delete;
  NotedReading& operator=(const NotedReading&) = delete;
  ~NotedReading();

 private:
  double start_ = PMPI_Wtime();
};

/// Says how a committed type is handled.
enum class TypeDisposition {
  committed,  ///< counted for every type whose commit was seen
  taken,      ///< packed by the engine, and sent by it where that is faster
  left        ///< left to MPI
};
inline constexpr int kDispositions = static_cast<int>(TypeDisposition::left) + 1;
/// Counts a type. Thread-safe.
void note_disposition(TypeDisposition disposition) noexcept;

/// Counts packed bytes that HALOCLINE_MPI=verify has compared with MPI's. Thread-safe.
void note_comparison(std::int64_t bytes, bool is_equal) noexcept;

/// Prints how a type is handled from now on: `decision`, then the type. With
/// HALOCLINE_MPI_LOG=types, the same line is printed only once.
void tell_of_type(MPI_Datatype type, const std::string& decision);

/// Prints how a type is handled, with HALOCLINE_MPI_LOG=types or calls. `decision()` returns the
/// text of tell_of_type(). Without such a log, it is not called.
template <class F>
void note_type(MPI_Datatype type, F&& decision) noexcept {
  if (settings().log < Settings::Log::types) return;
  try {
    tell_of_type(type, decision());
  } catch (const std::exception&) {
    // There is no memory for the line.
  }
}

/// Prints the table of all calls and types that were counted on standard error, all at once.
void print_summary() noexcept;

/// Returns `action()`, which makes a call of MPI and returns its code. With a log, notes the call
/// and its time. `action` may change `path`. Use it for calls with a known type.
template <class F>
int noted(MpiCall call, const Path& path, const Subject& subject, F&& action) {
  if (settings().log == Settings::Log::none) return action();
  const double start = PMPI_Wtime();
  const int code = action();
  note(call, path, subject, PMPI_Wtime() - start);
  return code;
}

}  // namespace halocline::interpose
