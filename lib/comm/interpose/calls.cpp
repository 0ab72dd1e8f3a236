// SPDX-License-Identifier: BSD-3-Clause
#include "comm/interpose/calls.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "comm/interpose/rule.hpp"
#include "dtype/datatype.hpp"
#include "dtype/type_expr.hpp"

namespace halocline::interpose {

namespace {

constexpr std::array kNames = {
#define HALOCLINE_PACKING(Name, ...) "MPI_" #Name,
#define HALOCLINE_MESSAGE HALOCLINE_PACKING
#define HALOCLINE_SECOND_MESSAGE(name, text) text,
#define HALOCLINE_COLLECTIVE HALOCLINE_PACKING
#include "comm/interpose/calls.def"
};

struct Noted {
  std::atomic<std::int64_t> calls{0}, bytes{0}, nanoseconds{0};
};
std::array<std::array<Noted, 2>, kNames.size()> noted_calls;  // by path
std::atomic<std::int64_t> nanoseconds_of_reading{0};
std::array<std::atomic<std::int64_t>, kDispositions> noted_dispositions;
struct NotedComparisons {
  std::atomic<std::int64_t> packs{0}, bytes{0}, different{0};
} noted_comparisons;
std::atomic<bool> is_summed_up{false};

const char* name_of(MpiCall call) {
  return kNames[static_cast<std::size_t>(call)];
}
const char* name_of(Path path) {
  return path == Path::engine ? "engine" : "mpi";
}
// Tells if a call returns before its message has been sent or received.
bool only_starts(MpiCall call) {
  return call == MpiCall::isend || call == MpiCall::irecv || is_persistent(call);
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

// Returns the type's text, cut if it is long: a type may have thousands of displacements.
std::string shortened_text_of(MPI_Datatype type) {
  constexpr std::size_t kMost = 200;
  auto out = text_of(type);
  if (out.size() <= kMost) return out;
  const auto characters = std::to_string(out.size());
  out.resize(kMost);
  return out + " ... (of " + characters + " characters)";
}

}  // namespace

void note(MpiCall call, Path path, const Subject& subject, double seconds) noexcept {
  auto [type, count, bytes] = subject;
  if (bytes < 0) {
    MPI_Count size = 0;
    PMPI_Type_size_x(type, &size);
    bytes = size * std::max<std::int64_t>(count, 0);  // a negative count is the program's error
  }
  auto& noted = noted_calls[static_cast<std::size_t>(call)][static_cast<std::size_t>(path)];
  ++noted.calls;
  noted.bytes += bytes;
  noted.nanoseconds += static_cast<std::int64_t>(seconds * 1e9);
  if (settings().log != Settings::Log::calls) return;
  try {
    const auto instances = subject.bytes >= 0 ? "types such as " : std::to_string(count) + " of ";
    std::fprintf(stderr, "halocline[%d]: %s by %s: %s%s (%lld bytes) in %.2f us\n", world_rank(),
                 name_of(call), name_of(path), instances.c_str(), shortened_text_of(type).c_str(),
                 static_cast<long long>(bytes), seconds * 1e6);
  } catch (const std::exception&) {
    // There is no memory for the line.
  }
}

NotedReading::~NotedReading() {
  nanoseconds_of_reading += static_cast<std::int64_t>((PMPI_Wtime() - start_) * 1e9);
}

void note_comparison(std::int64_t bytes, bool is_equal) noexcept {
  ++noted_comparisons.packs;
  noted_comparisons.bytes += bytes;
  if (!is_equal) ++noted_comparisons.different;
}

void note_disposition(TypeDisposition disposition) noexcept {
  ++noted_dispositions[static_cast<std::size_t>(disposition)];
}

void tell_of_type(MPI_Datatype type, const std::string& decision) {
  const auto line = decision + ": " + shortened_text_of(type);
  if (settings().log == Settings::Log::types) {
    // A program may make a type anew in every step, so each line is printed once. These two are
    // never destroyed: MPI is used until the end.
    static auto& mutex = *new std::mutex;
    static auto& lines = *new std::set<std::string>;
    const std::lock_guard lock(mutex);
    if (!lines.insert(line).second) return;
  }
  std::fprintf(stderr, "halocline[%d]: %s\n", world_rank(), line.c_str());
}

namespace {

template <class... Args>
std::string text(const char* format, const Args&... args) {
  char out[512];
  std::snprintf(out, sizeof out, format, args...);
  return out;
}

std::string text_of_mode() {
  if (settings().mode == Settings::Mode::engine)
    return "HALOCLINE_MPI is engine: all types with gaps";
  return std::string("HALOCLINE_MPI is ") + (verifies() ? "verify" : "auto") + ", messages " +
         (has_message_times() ? "by the model in " + dtype::default_model_path()
                              : std::string("left to MPI without a model of them"));
}

long long count_of(TypeDisposition one) {
  return noted_dispositions[static_cast<std::size_t>(one)];
}

std::string text_of_types() {
  auto left = count_of(TypeDisposition::committed);
  auto out = text("types committed: %lld", left);
  for (const auto& [one, what] :
       {std::pair(TypeDisposition::taken, "the engine's"),
        {TypeDisposition::left, "contiguous, unknown or of long blocks"}}) {
    if (count_of(one) != 0) out += text("; %s: %lld", what, count_of(one));
    left -= count_of(one);
  }
  if (left == 0) return out;
  return out + text("; hardly used or not at all: %lld", left);
}

std::string summary() {
  const auto begin = text("halocline[%d]: ", world_rank());
  auto out = begin + text_of_mode() + '\n' + begin + text_of_types() + '\n';
  bool is_any = false, is_any_start = false;
  std::string rows;
  for (std::size_t call = 0; call < kNames.size(); ++call)
    for (const auto path : {Path::engine, Path::mpi}) {
      const auto& noted = noted_calls[call][static_cast<std::size_t>(path)];
      if (noted.calls == 0) continue;
      const bool starts = only_starts(static_cast<MpiCall>(call));
      is_any = true, is_any_start = is_any_start || starts;
      rows += begin + text("%-22s %-6s %12lld %16lld %12.6f%s\n", kNames[call], name_of(path),
                           static_cast<long long>(noted.calls), static_cast<long long>(noted.bytes),
                           static_cast<double>(noted.nanoseconds) * 1e-9, starts ? " *" : "");
    }
  if (is_any)
    out +=
        begin +
        text("%-22s %-6s %12s %16s %12s\n", "derived types in", "by", "calls", "bytes", "seconds") +
        rows;
  if (is_any_start) out += begin + "* to start it; waiting for it is not in it\n";
  if (verifies())
    out += begin + text("compared with MPI's packs: %lld (%lld bytes); differ: %lld\n",
                        static_cast<long long>(noted_comparisons.packs),
                        static_cast<long long>(noted_comparisons.bytes),
                        static_cast<long long>(noted_comparisons.different));
  if (nanoseconds_of_reading != 0)
    out += begin + text("reading types and comparing them with MPI took %.6f seconds\n",
                        static_cast<double>(nanoseconds_of_reading) * 1e-9);
  return out;
}

}  // namespace

void print_summary() noexcept {
  is_summed_up = true;
  try {
    std::fputs(summary().c_str(), stderr);
  } catch (const std::exception&) {
    // There is no memory for the table.
  }
}

// Reports at the end of a program that no type was seen.
[[gnu::destructor]] static void tell_of_nothing() {
  // Without a log, this must not call MPI while the process ends. Verify mode turns the log on.
  if (is_summed_up || count_of(TypeDisposition::committed) != 0 ||
      (std::getenv("HALOCLINE_MPI_LOG") == nullptr && std::getenv("HALOCLINE_MPI") == nullptr))
    return;
  int was_initialized = 0;  // false in other processes, which the launcher needs
  PMPI_Initialized(&was_initialized);
  if (was_initialized == 0 || settings().log == Settings::Log::none ||
      settings().mode == Settings::Mode::off || !is_first_rank())
    return;
  std::fprintf(stderr,
               "halocline: no derived type was committed in its sight: all was "
               "left to MPI\n");
}

}  // namespace halocline::interpose
