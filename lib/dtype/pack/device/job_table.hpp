// SPDX-License-Identifier: BSD-3-Clause
// Jobs as a table that the threads of one launch read.
//
// Best peer: [PEA21] encodes one strided type in the arguments of one launch; here the jobs of all
// regions and fields are in them, a region once however many fields it is packed of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dtype/pack/device/device_plan.hpp"
#include "dtype/pack/host/nest.hpp"

namespace halocline::dtype::device {

using host::Address;
using host::Direction;

/// Threads of a block, and the most words that one of them copies: all loads first, then all
/// stores.
inline constexpr std::uint32_t kBlockThreads = 256;
inline constexpr std::uint32_t kMaxBatch = 4;
/// Levels, that over the words of a run included, for which there are kernels with unrolled loops.
inline constexpr int kMaxUnrolledLevels = 4;

/// The numbers in a table: 32-bit word numbers and strides, where these suffice, or 64-bit ones.
struct Narrow {
  using Index = std::uint32_t;
  using Offset = std::int32_t;
};
struct Wide {
  using Index = std::uint64_t;
  using Offset = std::int64_t;
};

/// A table is: Header, entries, levels, slots.
struct Header {
  std::uint32_t entries;
  std::uint32_t levels;  ///< where they begin, in bytes
  std::uint32_t slots;   ///< likewise
};

/// One loop. The number of a word, divided by the counts of an entry's levels one after the other,
/// leaves the steps as remainders.
template <class Form>
struct Level {
  typename Form::Offset stride, packed_stride;
  typename Form::Index count;
  std::uint32_t magic;  ///< Narrow: n / count = n * magic >> shift; 0: the last loop, n / count = 0
  std::uint32_t slot;   ///< of loops that are not strided
  std::uint8_t shift;
  LoopKind kind;
};

/// A leaf of a plan, copied from or to several buffers. What is left of the number of a word behind
/// the last level is the number of the buffer.
template <class Form>
struct Entry {
  std::int64_t displacement;   ///< from the buffer
  std::int64_t packed_offset;  ///< of the first buffer's
  std::int64_t packed_step;    ///< from one buffer's to the next one's
  typename Form::Index end;    ///< words of an instance up to and with this entry
  std::uint32_t buffers;       ///< the slot of the first
  std::uint32_t first_level;
  std::uint8_t levels;
  std::uint8_t word_log2;
  bool is_linear;  ///< the packed words of all buffers follow each other without gaps
};

/// What a launch needs beside the table.
struct Call {
  Address memory;            ///< added to all buffers
  Address packed;            ///< added to all packed offsets
  std::int64_t instances;    ///< that a table without a count is used for
  std::uint64_t words;       ///< of all instances
  std::uint32_t per_thread;  ///< at most kMaxBatch
};

/// The leaves of one plan and the buffers that they are copied from or to, at packed offsets of one
/// distance.
struct TableJob {
  const DevicePlan* plan;
  Address tables;  ///< where the plan's tables are in the memory of the device
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

/// The widest word, as its logarithm, that divides everything in `moves`; at most 16 bytes (errata
/// B.5).
int word_log2(std::uint64_t moves);

/// Builds the table for jobs whose packed addresses, less their packed offsets, are multiples of
/// `alignment`. With one job of count 0, the table serves any number of instances
/// (Call::instances) whose buffers are multiples of `alignment`; a narrow one, if all words
/// together are fewer than 2^31. `wide`: not narrow in any case. O(jobs x leaves).
JobTable make_table(std::span<const TableJob> jobs, std::int64_t alignment, bool wide = false);

}  // namespace halocline::dtype::device
