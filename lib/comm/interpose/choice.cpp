// SPDX-License-Identifier: BSD-3-Clause
#include "comm/interpose/choice.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <limits>
#include <mutex>
#include <new>
#include <string>
#include <system_error>

#include "comm/interpose/requests.hpp"
#include "comm/interpose/settings.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "support/error.hpp"
#include "support/machine.hpp"

namespace halocline::interpose {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Both {
  double ours, mpi;
};

// Returns the shortest seconds of a call of `ours` and of `mpi`. They run in turns, until it is
// clear who is faster. A sample has as many calls as the clock needs.
template <class Ours, class Mpi>
Both fastest(Ours&& ours, Mpi&& mpi) {
  constexpr double kSample = 5e-7, kAtMost = 2e-3, kClear = 1.5;
  constexpr int kAtLeast = 3, kRounds = 5;
  const auto sample = [](auto&& pack, int calls) {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) pack();
    return seconds_since(start) / calls;
  };
  const auto calls_in = [](double seconds) {
    return static_cast<int>(std::clamp(kSample / std::max(seconds, 1e-9), 1.0, 100.0));
  };
  const auto start = Clock::now();
  Both out{sample(ours, 1), sample(mpi, 1)};
  const int our_calls = calls_in(out.ours), mpi_calls = calls_in(out.mpi);
  const auto is_clear = [&] {
    return std::max(out.ours, out.mpi) > kClear * std::min(out.ours, out.mpi);
  };
  for (int round = 1; round < kRounds; ++round) {
    out.ours = std::min(out.ours, sample(ours, our_calls));
    out.mpi = std::min(out.mpi, sample(mpi, mpi_calls));
    if (round + 1 >= kAtLeast && (is_clear() || seconds_since(start) > kAtMost)) break;
  }
  return out;
}

// Returns the line of time over packed bytes through the seconds of one and of `instances`
// instances of `bytes` bytes each.
PackTime line(double one, double all, std::int64_t bytes, std::int64_t instances) {
  const auto n = static_cast<double>(bytes);
  if (instances == 1) return {0, one / n};
  const double byte = std::max(all - one, 0.0) / (n * static_cast<double>(instances - 1));
  return {std::max(one - byte * n, 0.0), byte};
}

// Packs by MPI. Returns false if MPI fails or packs another number of bytes.
bool pack_by_mpi(MPI_Datatype handle, const void* buffer, std::int64_t count, std::byte* packed,
                 std::int64_t bytes) {
  int position = 0;
  const int code = PMPI_Pack(buffer, static_cast<int>(count), handle, packed,
                             static_cast<int>(bytes), &position, MPI_COMM_SELF);
  return code == MPI_SUCCESS && position == bytes;
}

bool unpack_by_mpi(const std::byte* packed, std::int64_t bytes, void* buffer, std::int64_t count,
                   MPI_Datatype handle) {
  int position = 0;
  return PMPI_Unpack(packed, static_cast<int>(bytes), &position, buffer, static_cast<int>(count),
                     handle, MPI_COMM_SELF) == MPI_SUCCESS;
}

// Returns the times of one and of `instances` instances of `bytes` bytes each. `ours(n)` and
// `mpi(n)` return the functions that handle n instances.
template <class Ours, class Mpi>
PackTimes times_of(std::int64_t bytes, std::int64_t instances, Ours&& ours, Mpi&& mpi) {
  constexpr std::int64_t kGrowth = 8;
  const auto all = fastest(ours(instances), mpi(instances));
  const auto one = instances == 1 ? all : fastest(ours(1), mpi(1));
  return {line(one.ours, all.ours, bytes, instances), line(one.mpi, all.mpi, bytes, instances),
          bytes * instances < kLongestMeasured / kGrowth
              ? bytes * instances * kGrowth
              : std::numeric_limits<std::int64_t>::max()};
}

std::int64_t sample_of(std::int64_t count, std::int64_t bytes, std::int64_t at_most) {
  return std::min(std::max<std::int64_t>(at_most / bytes, 1), count);
}

bool same(const PackedBytes& a, const PackedBytes& b, std::int64_t bytes) {
  return std::memcmp(a.data(), b.data(), static_cast<std::size_t>(bytes)) == 0;
}

// A pack from a wrong place is noticed, unless the place is wrong by a multiple of this. It is 17
// pages of any size up to 64 KiB.
constexpr std::int64_t kPeriod = std::int64_t{17} << 16;
constexpr std::int64_t kAlignment = 64;

// Is read-only memory in which the bytes tell their places. The same kPeriod bytes are mapped again
// and again, so any length takes no more memory than one period. It has kMargin more bytes on both
// sides: some MPIs read beside the places of types that they pack wrongly.
class TellingMemory {
 public:
  static constexpr std::int64_t kMargin = 4 * kPeriod;
  static constexpr std::int64_t kMost = kPeriod << 15;  // 36 GB: half of a process's mappings

  // Maps memory with `bytes` bytes to read. Throws std::bad_alloc.
  explicit TellingMemory(std::int64_t bytes)
      : mapped_(((bytes + 2 * kMargin) / kPeriod + 1) * kPeriod) {
    auto* const period = bytes_of_period();
    begin_ = static_cast<std::byte*>(map(mapped_, PROT_NONE, MAP_PRIVATE | MAP_NORESERVE));
    for (std::int64_t at = 0; at < mapped_; at += kPeriod)
      if (::mremap(period, 0, kPeriod, MREMAP_MAYMOVE | MREMAP_FIXED, begin_ + at) == MAP_FAILED) {
        unmap();
        throw std::bad_alloc();
      }
  }
  TellingMemory(const TellingMemory&) = delete;
  TellingMemory& operator=(const TellingMemory&) = delete;
  ~TellingMemory() { unmap(); }

  // Returns the address of these bytes, aligned for all types.
  const std::byte* data() const { return begin_ + kMargin; }

 private:
  static void* map(std::int64_t bytes, int protection, int flags) {
    void* const out =
        ::mmap(nullptr, static_cast<std::size_t>(bytes), protection, flags | MAP_ANONYMOUS, -1, 0);
    if (out == MAP_FAILED) throw std::bad_alloc();
    return out;
  }
  void unmap() { ::munmap(begin_, static_cast<std::size_t>(mapped_)); }

  // Returns one period of bytes. It is shared memory, so mremap() maps it once more and moves
  // nothing.
  static void* bytes_of_period() {
    static void* const period = [] {
      void* const memory = map(kPeriod, PROT_READ | PROT_WRITE, MAP_SHARED);
      auto* const words = static_cast<std::uint64_t*>(memory);
      std::uint64_t state = 0;
      for (std::size_t i = 0; i < kPeriod / sizeof *words; ++i) {
        state += 0x9E3779B97F4A7C15u;
        const auto word = (state ^ state >> 29) * 0xBF58476D1CE4E5B9u;
        words[i] = word ^ word >> 32;
      }
      ::mprotect(memory, kPeriod, PROT_READ);
      return memory;
    }();
    return period;
  }

  std::int64_t mapped_;  // bytes
  std::byte* begin_ = nullptr;
};

bool is_model_given() {
  const auto* const given = std::getenv("HALOCLINE_MODEL");
  return given != nullptr && *given != '\0';
}

std::optional<dtype::SystemModel> read_model_of_user() {
  const bool is_given = is_model_given();
  const bool is_logged = settings().log != Settings::Log::none;
  try {
    const auto path = dtype::default_model_path();
    if (!is_given && !std::filesystem::exists(path)) {
      if (is_logged && is_first_rank())
        std::fprintf(stderr,
                     "halocline: there is no system model (%s): messages are left to MPI until "
                     "'halocline calibrate' has measured one\n",
                     path.c_str());
      return std::nullopt;
    }
    auto out = dtype::read_model(path);
    auto here = out.provenance;  // the device is compared later, when one is found
    here.cpu = cpu_model();
    here.mpi = mpi_library();
    if (const auto differences = dtype::require_match(out.provenance, here, true);
        !differences.empty())
      throw ConfigError(path + ": the system model is of another machine (" + differences +
                        "): measure this one with 'halocline calibrate'");
    if (const auto flaws = flaws_of(out, path); !flaws.empty() && is_logged && is_first_rank())
      std::fprintf(stderr, "halocline: %s\n", flaws.c_str());
    return out;
  } catch (const std::exception& error) {
    // Without a log or HALOCLINE_MODEL, nobody has asked for a model.
    if ((is_given || is_logged) && is_first_rank())
      std::fprintf(stderr, "halocline: %s; goes on without a model%s\n", error.what(),
                   settings().mode == Settings::Mode::engine ? "" : ", messages are left to MPI");
    return std::nullopt;
  }
}

int number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? -1 : std::atoi(text);
}

}  // namespace

Measured measure_packing(const dtype::PackPlan& plan, MPI_Datatype handle, const void* readable,
                         std::int64_t count, std::int64_t at_most) {
  using What = Measured::What;
  const auto& bounds = plan.bounds();
  if (bounds.size > kLongestMeasured) return {What::too_long};
  const auto span_of = [&](std::int64_t n) {
    return static_cast<double>(bounds.true_extent) +
           static_cast<double>(std::abs(bounds.extent)) * static_cast<double>(n - 1);
  };
  constexpr auto kMost = static_cast<double>(TellingMemory::kMost), kShort = 64e6;
  // MPI may pack several instances in another way than one.
  const std::int64_t compared = bounds.size <= kFirstMeasured && span_of(3) <= kShort ? 3 : 2;
  if (span_of(compared) > kMost) return {What::too_far};
  const auto sampled = sample_of(count, bounds.size, at_most);
  auto timed = sampled;
  while (readable == nullptr && timed > 1 && span_of(timed) > kMost) timed /= 2;
  const auto placed = readable != nullptr ? compared : std::max(compared, timed);
  const auto distance = bounds.extent * (placed - 1);
  const auto span = bounds.true_extent + std::abs(distance);
  // Most types are short enough for one memory that is made once.
  static const auto& shared_memory = *new TellingMemory(kPeriod);
  std::optional<TellingMemory> own_memory;
  const auto& memory = span < kPeriod ? shared_memory : own_memory.emplace(span + kAlignment);
  // The data get the same alignment as in a program.
  const auto first = bounds.true_lb + std::min<std::int64_t>(distance, 0);
  const auto aligned_first = first & -kAlignment;
  const auto* const telling = reinterpret_cast<const void*>(
      reinterpret_cast<std::uintptr_t>(memory.data()) - static_cast<std::uintptr_t>(aligned_first));
  const auto bytes = plan.packed_bytes(std::max(compared, timed));
  const PackedBytes our_bytes(bytes), mpi_bytes(bytes);
  const auto by_us = [&](const void* from, std::int64_t n) {
    dtype::HostPacker().pack(plan, from, n, our_bytes.data());
  };
  const auto by_mpi = [&](const void* from, std::int64_t n) {
    return pack_by_mpi(handle, from, n, mpi_bytes.data(), plan.packed_bytes(n));
  };
  by_us(telling, compared);
  if (!by_mpi(telling, compared) || !same(our_bytes, mpi_bytes, plan.packed_bytes(compared)))
    return {What::different};
  if (count == 0) return {What::alike};
  const auto* const from = readable != nullptr ? readable : telling;
  auto times = times_of(
      bounds.size, timed, [&](std::int64_t n) { return [&, n] { by_us(from, n); }; },
      [&](std::int64_t n) { return [&, n] { return by_mpi(from, n); }; });
  if (timed < sampled)
    times.up_to = std::numeric_limits<std::int64_t>::max();  // longer memory cannot be mapped
  return {What::times, times};
}

PackTimes measure_unpacking(const dtype::PackPlan& plan, MPI_Datatype handle,
                            const std::byte* packed, void* buffer, std::int64_t count,
                            std::int64_t at_most) {
  const auto by_us = [&](std::int64_t n) {
    return [&, n] { dtype::HostPacker().unpack(plan, packed, buffer, n); };
  };
  const auto by_mpi = [&](std::int64_t n) {
    return [&, n] { unpack_by_mpi(packed, plan.packed_bytes(n), buffer, n, handle); };
  };
  const auto size = plan.bounds().size;
  return times_of(size, sample_of(count, size, at_most), by_us, by_mpi);
}

const dtype::SystemModel* model() {
  // Never destroyed: a program may send while it ends.
  static const auto& value = *new auto(read_model_of_user());
  return value ? &*value : nullptr;
}

bool is_model_missing() {
  std::error_code error;
  return is_model_given() && !std::filesystem::exists(dtype::default_model_path(), error);
}

bool all_ranks_are_near() {
  static const bool value = [] {
    int ranks = 0;
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    // The variables are Open MPI's, that of MPICH and Intel MPI, and Slurm's without these
    // launchers.
    const int open_mpi = number_in("OMPI_COMM_WORLD_LOCAL_SIZE");
    const int near = open_mpi > 0 ? open_mpi : number_in("MPI_LOCALNRANKS");
    return ranks == 1 || near == ranks || (near < 0 && number_in("SLURM_STEP_NUM_NODES") == 1);
  }();
  return value;
}

const dtype::MessageTimes* message_times() {
  static const auto* const value = [] {
    const dtype::MessageTimes* none = nullptr;
    if (model() == nullptr) return none;
    const auto& paths = kStreams ? model()->streamed_messages : model()->host_messages;
    const auto& path = all_ranks_are_near() ? paths.on_node : paths.off_node;
    if (path) return &*path;
    if (settings().log != Settings::Log::none && is_first_rank())
      std::fprintf(stderr,
                   "halocline: the system model has no %smessages %s: they are left to MPI until "
                   "'halocline calibrate' has measured them\n",
                   kStreams ? "streamed " : "",
                   all_ranks_are_near() ? "on a node" : "between nodes");
    return none;
  }();
  return value;
}

bool message_may_pay(std::int64_t bytes) {
  const auto* const path = message_times();
  return path != nullptr && bytes <= std::min(kLongestMessage, path->reach(1));
}

MessageTime message_time(const dtype::MessageTimes& messages, const PackTimes& packing,
                         std::int64_t bytes, Traffic traffic) {
  constexpr double kBlocking = 100e-9, kNonblocking = 400e-9;
  const double latency = messages.at(1, 0), message = messages.at(1, static_cast<double>(bytes));
  const double ours = 2 * packing.ours.of(bytes) + message, mpi = packing.mpi.of(bytes);
  if (traffic == Traffic::both_ways)
    return {2 * kNonblocking + ours + message - latency, 2 * mpi + message};
  return {2 * kBlocking + ours,
          latency + std::max(mpi, message - latency) + packing.mpi.of(std::min(bytes, kPiece))};
}

}  // namespace halocline::interpose
