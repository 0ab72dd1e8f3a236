// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

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

}  // namespace halocline::dtype::bench
