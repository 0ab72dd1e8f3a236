// SPDX-License-Identifier: BSD-3-Clause
// A plan as a device executes it: every byte of the packed stream found from its number, without a
// walk.
//
// Best peer: [PEA21] has a kernel each for two and for three dimensions of strides, yaksa one for
// each nesting of two and a launch for each instance beyond; here any nesting is a list of leaves
// with their loops, which one kernel executes for all leaves of all jobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dtype/pack/copy_plan.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::dtype::device {

/// How a step of a loop moves the pointer.
enum class LoopKind : std::uint8_t {
  strided,     ///< step i: i * stride
  near_table,  ///< the i-th of a table of 32-bit displacements
  far_table,   ///< of 64-bit ones
  runs,        ///< element i: the displacement of the run that holds it, and `stride` for each
               ///< element of the run before it
  rule         ///< likewise, of the bucket that holds it
};

/// One loop around a leaf. Step i is at packed offset i * packed_stride.
struct Loop {
  LoopKind kind = LoopKind::strided;
  std::int64_t count = 1;  ///< steps; of runs and rules, elements
  std::int64_t stride = 0;
  std::int64_t packed_stride = 0;
  std::int64_t entries = 0;  ///< runs and rules: how many
  std::int64_t table = -1;   ///< byte offset in the tables: displacements; of a rule none
  std::int64_t ends = -1;    ///< byte offset in the tables: where runs or buckets end, in elements
  std::int32_t rule = -1;    ///< index in DevicePlan::rules()
  std::uint64_t moves = 0;   ///< all bits of what the pointer is moved by, strides apart
  bool operator==(const Loop&) const = default;
};

/// `run` consecutive bytes, in loops; the innermost loop first. The last one runs over the
/// instances of a call, too: as often for each of them as it says.
struct Leaf {
  std::int64_t displacement = 0;   ///< from the buffer argument
  std::int64_t packed_offset = 0;  ///< in an instance
  std::int64_t run = 0;
  std::vector<Loop> loops;
};

/// The leaves of a PackPlan and the tables that their loops refer to: displacements of lists and
/// ends of runs, nothing for strided types. Immutable.
class DevicePlan {
 public:
  /// O(loops + displacements). Structs in which more than kMaxSplit short runs stand keep a list of
  /// them.
  explicit DevicePlan(const PackPlan& plan);

  /// The nests and pieces of a CopyPlan: displacements are the addresses of the source, packed
  /// offsets those of the destination. O(nests + pieces).
  explicit DevicePlan(const detail::CopyProgram& program);

  const std::vector<Leaf>& leaves() const { return leaves_; }
  std::span<const std::byte> tables() const { return std::as_bytes(std::span(tables_)); }
  const std::vector<BucketRule>& rules() const { return rules_; }

  static constexpr std::int64_t kMaxSplit = 16;

 private:
  friend class Flattener;
  std::vector<Leaf> leaves_;
  std::vector<std::int64_t> tables_;  // 32-bit tables padded to 8 bytes
  std::vector<BucketRule> rules_;
};

}  // namespace halocline::dtype::device
