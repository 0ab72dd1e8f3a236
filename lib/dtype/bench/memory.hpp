// SPDX-License-Identifier: BSD-3-Clause
// Holds the host memory of benchmarks, and fills memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace halocline::dtype::bench {

/// Fills memory with words of eight bytes that differ everywhere, from place to place and from seed
/// to seed. `bytes` must be a multiple of eight.
inline void fill_with_noise(std::byte* memory, std::size_t bytes, std::uint64_t seed) {
  for (std::size_t i = 0; i < bytes; i += sizeof(std::uint64_t)) {
    const auto value = (i + seed) * 0x9E3779B97F4A7C15u;
    const auto mixed = value ^ value >> 29;
    std::memcpy(memory + i, &mixed, sizeof mixed);
  }
}

/// Holds memory that is touched before it is timed, and kept for the next case. Bytes before and
/// behind those of the case must not change.
class Buffer {
 public:
  /// `offset`: bytes from the begin of a page to the data
  explicit Buffer(std::size_t offset) : offset_(offset) {}

  void resize(std::int64_t bytes) {
    const auto wanted = static_cast<std::size_t>(bytes) + offset_ + 2 * kGuard;
    if (wanted > capacity_) {
      memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kGuard, rounded(wanted))));
      if (!memory_) throw std::bad_alloc();
      capacity_ = rounded(wanted);
    }
    used_ = wanted;
  }

  std::byte* data() const { return memory_.get() + kGuard + offset_; }

  void fill(std::uint64_t seed) { fill_with_noise(memory_.get(), rounded(used_), seed); }

  bool operator==(const Buffer& other) const {
    return used_ == other.used_ && std::memcmp(memory_.get(), other.memory_.get(), used_) == 0;
  }

  /// Returns a hash of all bytes and their order, for cases that are too large to keep a copy.
  std::uint64_t hash() const {
    std::uint64_t hash = 0, word = 0;
    for (std::size_t i = 0; i < rounded(used_); i += sizeof word) {
      std::memcpy(&word, memory_.get() + i, sizeof word);
      hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
      hash ^= hash >> 32;
    }
    return hash;
  }

 private:
  static constexpr std::size_t kGuard = 4096;

  static std::size_t rounded(std::size_t bytes) { return (bytes + kGuard - 1) / kGuard * kGuard; }

  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte[], Free> memory_;
  std::size_t offset_, capacity_ = 0, used_ = 0;
};

}  // namespace halocline::dtype::bench
