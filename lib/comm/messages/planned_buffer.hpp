// SPDX-License-Identifier: BSD-3-Clause
// Describes the user's side of a message.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dtype/pack/host/copy_range.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::comm {

/// Returns the address `displacement` bytes behind `buffer`, which may be MPI_BOTTOM.
inline std::byte* byte_at(const void* buffer, std::int64_t displacement) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(buffer) +
                                      static_cast<std::uintptr_t>(displacement));
}

/// Represents `count` instances at `buffer`, which belongs to the user. Only unpacking writes
/// there.
struct PlannedBuffer {
  dtype::PackPlan plan;
  void* buffer;
  std::int64_t count;

  std::int64_t bytes() const { return plan.packed_bytes(count); }

  /// Packs the bytes [first, last) of all packed bytes into `packed`, or unpacks them from there.
  /// Done on return, by the calling thread. The stretch may end inside of a basic element. Entries
  /// that overlap are unpacked in the order of the type map.
  template <dtype::host::CopyDirection kDirection>
  void copy(std::int64_t first, std::int64_t last, const std::byte* packed) const {
    dtype::host::copy_range<kDirection>(plan, reinterpret_cast<dtype::host::Address>(buffer), count,
                                        first, last,
                                        reinterpret_cast<dtype::host::Address>(packed));
  }
};

}  // namespace halocline::comm
