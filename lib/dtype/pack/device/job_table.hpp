// SPDX-License-Identifier: BSD-3-Clause
// Describes jobs by a table that the threads of one launch read.
//
// Best peer: [PEA21] encodes one strided type in the arguments of one launch. Here they hold the
// jobs of all regions and fields. A region is in them once, however many fields it belongs to.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dtype/pack/address.hpp"
#include "dtype/pack/device/device_plan.hpp"

namespace halocline::dtype::device {

using detail::Address;
using detail::CopyDirection;

/// Limit a launch: the threads of a block, and the words that a thread copies at once. A thread
/// executes all loads first, then all stores.
inline constexpr std::uint32_t kBlockThreads = 256;
inline constexpr std::uint32_t kMaxBatch = 4;
/// Is the highest number of levels for which there are kernels with unrolled loops. A loop over the
/// words of a run counts as a level.
inline constexpr int kMaxUnrolledLevels = 4;

/// Names the types of the numbers in a table: 32-bit word numbers and strides.
struct Narrow {
  using Index = std::uint32_t;
  using Offset = std::int32_t;
};
/// Names the types of the numbers in a table that 32 bits do not suffice for: 64-bit word numbers
/// and strides.
struct Wide {
  using Index = std::uint64_t;
  using Offset = std::int64_t;
};

/// Begins a table. Header, entries, levels and slots follow each other. A slot is a 64-bit number:
/// an address or a number of a rule.
struct Header {
  std::uint32_t entries;
  std::uint32_t levels;  ///< byte offset of the levels
  std::uint32_t slots;   ///< byte offset of the slots
};

/// Describes one loop. The number of a word is divided by the counts of an entry's levels, one
/// after the other. The remainders are the steps.
template <class Form>
struct Level {
  typename Form::Offset stride, packed_stride;
  typename Form::Index count;
  std::uint32_t magic;  ///< Narrow: n / count = n * magic >> shift; 0: the last loop, n / count = 0
  std::uint32_t slot;   ///< loops that are not strided: index of their first slot
  std::uint8_t shift;
  LoopKind kind;
};

/// Describes a leaf of a plan, copied from or to several buffers. The last quotient of the division
/// by the levels is the number of the buffer.
template <class Form>
struct Entry {
  std::int64_t displacement;   ///< from the address of the buffer
  std::int64_t packed_offset;  ///< packed offset of the first buffer
  std::int64_t packed_step;    ///< from the packed offset of one buffer to the next
  typename Form::Index end;    ///< words of an instance up to and including this entry
  std::uint32_t buffers;       ///< index of the first buffer's slot
  std::uint32_t first_level;
  std::uint8_t levels;
  std::uint8_t word_log2;
  bool is_linear;  ///< the packed words of all buffers follow each other without gaps
};

/// Holds the arguments of a launch besides the table.
struct LaunchArguments {
  Address memory;            ///< added to the addresses of all buffers
  Address packed;            ///< added to all packed offsets
  std::int64_t instances;    ///< instances, for a table made for any count; otherwise 1
  std::uint64_t words;       ///< words of all instances
  std::uint32_t per_thread;  ///< words that a thread copies, at most kMaxBatch
};

/// Describes the leaves of one plan and the buffers that they are copied from or to. The packed
/// offsets of the buffers are equal distances apart.
struct TableJob {
  const DevicePlan* plan;
  Address tables;  ///< address of the plan's tables in the memory of the device
  std::int64_t count;
  std::vector<Address> buffers;
  std::int64_t packed_offset = 0, packed_step = 0;
};

/// Holds the table of a launch. Its loops can be unrolled if all of them are strided.
struct JobTable {
  /// Entries that a block of an unrolled kernel walks through without losing time.
  static constexpr std::size_t kShortWalk = 16;

  bool wide = false;
  int levels = 0;           ///< loops of each entry; 0: they cannot be unrolled
  std::uint64_t words = 0;  ///< of one instance
  /// Words of those kShortWalk entries in a row that have the fewest, of one instance. The largest
  /// number if the table has no more entries than that.
  std::uint64_t words_of_walk = ~std::uint64_t{0};
  std::vector<std::byte> bytes;

  /// Returns the number of loops that the kernel for `instances` instances unrolls. 0 stands for
  /// the general kernel, which finds each word's entry by bisection. It is for tables in which the
  /// words of a block may lie in many entries.
  int unrolled_levels(std::int64_t instances) const {
    const auto least = std::uint64_t{kBlockThreads * kMaxBatch};
    return words_of_walk >= least / static_cast<std::uint64_t>(instances) ? levels : 0;
  }
};

/// Returns the base-2 logarithm of the widest word, at most 16 bytes, that divides everything in
/// `alignment_bits` (errata B.5).
int word_log2(std::uint64_t alignment_bits);

/// Builds the table for jobs. O(jobs x leaves).
///
/// With one job of count 0, the table serves any number of instances (LaunchArguments::instances)
/// whose buffers are multiples of `alignment`. A narrow table serves them while all words together
/// are fewer than 2^31.
///
/// \param jobs plans with their buffers and packed offsets
/// \param alignment divides the packed addresses of all jobs, less their packed offsets
/// \param wide true: the table has 64-bit numbers in any case
JobTable make_table(std::span<const TableJob> jobs, std::int64_t alignment, bool wide = false);

}  // namespace halocline::dtype::device
