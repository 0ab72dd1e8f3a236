// SPDX-License-Identifier: BSD-3-Clause
#include "comm/interpose/comparison.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>

#include "comm/interpose/calls.hpp"
#include "comm/interpose/requests.hpp"
#include "dtype/pack/host/host_packer.hpp"

namespace halocline::interpose {

namespace {

// Packs by MPI. Returns false if MPI fails or packs another number of bytes.
bool pack_by_mpi(MPI_Datatype handle, const void* buffer, std::int64_t count, std::byte* packed,
                 std::int64_t bytes) {
  int position = 0;
  const int code = PMPI_Pack(buffer, static_cast<int>(count), handle, packed,
                             static_cast<int>(bytes), &position, MPI_COMM_SELF);
  return code == MPI_SUCCESS && position == bytes;
}

// A pack from a wrong place is noticed, unless the place is wrong by a multiple of this period. The
// period is a whole number of pages of up to 64 KiB, as mremap() needs. Its factor 17 is odd,
// so that errors by powers of two are noticed.
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
      if (!map_again(period, begin_ + at)) {
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
  // Maps a period once more. Makes the system call itself: UCX replaces mremap(), and its function
  // loses the address.
  static bool map_again(void* period, std::byte* to) {
    return ::syscall(SYS_mremap, period, 0, kPeriod, MREMAP_MAYMOVE | MREMAP_FIXED, to) != -1;
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

}  // namespace

std::optional<bool> packs_as_mpi(const dtype::PackPlan& plan, MPI_Datatype handle, bool several) {
  const auto& bounds = plan.bounds();
  if (bounds.size > kLongestCompared) return std::nullopt;
  const auto span_of = [&](std::int64_t n) {
    return static_cast<double>(bounds.true_extent) +
           static_cast<double>(std::abs(bounds.extent)) * static_cast<double>(n - 1);
  };
  constexpr auto kMost = static_cast<double>(TellingMemory::kMost), kShort = 64e6;
  constexpr std::int64_t kLong = std::int64_t{1} << 20;
  const std::int64_t instances = !several                                       ? 1
                                 : bounds.size <= kLong && span_of(3) <= kShort ? 3
                                                                                : 2;
  if (span_of(instances) > kMost) return std::nullopt;
  const auto distance = bounds.extent * (instances - 1);
  const auto span = bounds.true_extent + std::abs(distance);
  // Most types are short enough for one memory that is made once.
  static const auto& shared_memory = *new TellingMemory(kPeriod);
  std::optional<TellingMemory> own_memory;
  const auto& memory = span < kPeriod ? shared_memory : own_memory.emplace(span + kAlignment);
  // The data get the same alignment as in a program.
  const auto first = bounds.true_lb + std::min<std::int64_t>(distance, 0);
  const auto aligned_first = first & -kAlignment;
  const auto* const telling = comm::byte_at(memory.data(), -aligned_first);
  const auto bytes = plan.packed_bytes(instances);
  const auto ours = host_bytes(bytes), mpis = host_bytes(bytes);
  dtype::HostPacker().pack(plan, telling, instances, ours.data());
  return pack_by_mpi(handle, telling, instances, mpis.data(), bytes) &&
         std::memcmp(ours.data(), mpis.data(), static_cast<std::size_t>(bytes)) == 0;
}

void verify(MPI_Datatype handle, const void* buffer, std::int64_t count, const std::byte* packed,
            std::int64_t bytes) noexcept try {
  const auto mpis = host_bytes(bytes);
  const bool as_long = pack_by_mpi(handle, buffer, count, mpis.data(), bytes);
  const auto* const end = packed + bytes;
  const auto* const different = as_long ? std::mismatch(packed, end, mpis.data()).first : packed;
  note_comparison(as_long ? bytes : 0, as_long && different == end);
  if (!as_long)
    return tell_of_type(handle,
                        "MPI_Pack packs another number of bytes than " + std::to_string(bytes));
  if (different != end)
    tell_of_type(handle, "byte " + std::to_string(different - packed) + " of " +
                             std::to_string(bytes) + " packed bytes differs from MPI's");
} catch (const std::exception&) {
  // There is no memory.
}

}  // namespace halocline::interpose
