// SPDX-License-Identifier: BSD-3-Clause
// Lists and counts the blocks of memory that hold a range of the packed stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dtype/pack/pack_plan.hpp"

namespace halocline::dtype {

/// Describes consecutive bytes of the user's memory, relative to the buffer argument.
struct MemoryBlock {
  std::int64_t offset;
  std::int64_t length;
  bool operator==(const MemoryBlock&) const = default;
};

/// Lists the blocks that hold the bytes of the packed stream from `position` on, in packed order,
/// until the stream or `out` ends. Moves `position` behind them.
///
/// No block begins where the block before it ends, so the number of blocks is the lowest possible.
/// O(blocks + depth + log entries). No allocation.
/// \param plan plan of one instance
/// \param count instances in the stream
/// \param position byte of the packed stream from which blocks are listed; moved behind them
/// \param out receives the blocks
/// \return number of blocks
std::size_t list_blocks(const PackPlan& plan, std::int64_t count, std::int64_t& position,
                        std::span<MemoryBlock> out);

/// Returns the number of blocks that list_blocks() lists for the bytes [first, last) of the packed
/// stream of `count` instances.
///
/// O(depth + loops that hold lists or structs). A list that the range cuts costs O(its entries),
/// and buckets that are no runs cost O(their elements).
std::int64_t count_blocks(const PackPlan& plan, std::int64_t count, std::int64_t first,
                          std::int64_t last);

}  // namespace halocline::dtype
