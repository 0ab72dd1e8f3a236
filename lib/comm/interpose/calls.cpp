// SPDX-License-Identifier: BSD-3-Clause
#include "comm/interpose/calls.hpp"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <variant>

#include "dtype/datatype.hpp"
#include "dtype/type_expr.hpp"

namespace halocline::interpose {

namespace {

constexpr std::array<const char*, kCalls> kNames = {"MPI_Pack",
                                                    "MPI_Unpack",
                                                    "MPI_Send",
                                                    "MPI_Recv",
                                                    "MPI_Isend",
                                                    "MPI_Irecv",
                                                    "MPI_Sendrecv",
                                                    "  its receive",
                                                    "MPI_Send_init",
                                                    "MPI_Recv_init",
                                                    "MPI_Alltoallv",
                                                    "MPI_Alltoallw",
                                                    "MPI_Neighbor_alltoallw"};

struct Noted {
  std::atomic<std::int64_t> calls{0}, bytes{0}, nanoseconds{0};
};
std::array<std::array<Noted, 2>, kCalls> noted_calls;  // by path
Noted noted_measurements;
std::atomic<bool> is_summed_up{false};

const char* name_of(Call call) {
  return kNames[static_cast<std::size_t>(call)];
}
const char* name_of(Path path) {
  return path == Path::engine ? "engine" : "mpi";
}

int world_rank() {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

std::string text_of(MPI_Datatype type) {
  const auto expression = dtype::decode(type);
  if (const auto* known = std::get_if<dtype::TypeExprPtr>(&expression)) return to_string(**known);
  return std::get<UnsupportedDatatype>(expression).what();
}

// A type may have thousands of displacements.
std::string shortened(std::string text) {
  constexpr std::size_t kMost = 200;
  if (text.size() > kMost) text.replace(kMost - 4, std::string::npos, " ...");
  return text;
}

}  // namespace

void note(Call call, Path path, const Subject& subject, double seconds) noexcept {
  auto [type, count, bytes] = subject;
  if (bytes < 0) {
    MPI_Count size = 0;
    PMPI_Type_size_x(type, &size);
    bytes = size * count;
  }
  auto& noted = noted_calls[static_cast<std::size_t>(call)][static_cast<std::size_t>(path)];
  ++noted.calls;
  noted.bytes += bytes;
  noted.nanoseconds += static_cast<std::int64_t>(seconds * 1e9);
  if (settings().log != Settings::Log::calls) return;
  try {
    const auto instances = count == 0 ? "several, first " : std::to_string(count) + " of ";
    std::fprintf(stderr, "halocline[%d]: %s by %s: %s%s (%lld bytes) in %.2f us\n", world_rank(),
                 name_of(call), name_of(path), instances.c_str(), shortened(text_of(type)).c_str(),
                 static_cast<long long>(bytes), seconds * 1e6);
  } catch (const std::exception&) {
    // No memory for telling of it.
  }
}

void note_measurement(double seconds) noexcept {
  ++noted_measurements.calls;
  noted_measurements.nanoseconds += static_cast<std::int64_t>(seconds * 1e9);
}

void note_type(MPI_Datatype type, const char* decision) noexcept {
  if (settings().log < Settings::Log::types) return;
  try {
    std::fprintf(stderr, "halocline[%d]: %s: %s\n", world_rank(), decision,
                 shortened(text_of(type)).c_str());
  } catch (const std::exception&) {
    // No memory for telling of it.
  }
}

void print_summary() noexcept {
  is_summed_up = true;
  const int rank = world_rank();
  std::fprintf(stderr, "halocline[%d]: %-22s %-6s %12s %16s %12s\n", rank, "derived types in", "by",
               "calls", "bytes", "seconds in it");
  for (int call = 0; call < kCalls; ++call)
    for (const auto path : {Path::engine, Path::mpi}) {
      const auto& noted =
          noted_calls[static_cast<std::size_t>(call)][static_cast<std::size_t>(path)];
      if (noted.calls == 0) continue;
      std::fprintf(stderr, "halocline[%d]: %-22s %-6s %12lld %16lld %12.6f\n", rank,
                   name_of(static_cast<Call>(call)), name_of(path),
                   static_cast<long long>(noted.calls), static_cast<long long>(noted.bytes),
                   static_cast<double>(noted.nanoseconds) * 1e-9);
    }
  if (const auto& measured = noted_measurements; measured.calls != 0)
    std::fprintf(stderr, "halocline[%d]: %-22s %-6s %12lld %16s %12.6f\n", rank,
                 "measured who is faster", "both", static_cast<long long>(measured.calls), "",
                 static_cast<double>(measured.nanoseconds) * 1e-9);
}

// Of a program whose types were never seen there is no summary, nor a rank to ask for any more:
// the launcher's variables tell it.
[[gnu::destructor]] static void tell_of_nothing() {
  int was_initialized = 0;  // else it is another process that the launcher needs
  PMPI_Initialized(&was_initialized);
  if (was_initialized == 0 || is_summed_up || settings().log == Settings::Log::none ||
      settings().mode == Settings::Mode::off)
    return;
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"})
    if (const char* const rank = std::getenv(variable); rank != nullptr && rank[0] != '0') return;
  std::fprintf(stderr,
               "halocline: no derived type was committed in its sight (mpi_f08 is not): all was "
               "left to MPI\n");
}

}  // namespace halocline::interpose
