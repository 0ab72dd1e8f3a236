// SPDX-License-Identifier: BSD-3-Clause
// Describes a plan as a device executes it: every byte of the packed stream is found from its
// number, without a walk.
//
// Best peer: [PEA21] has one kernel for two and one for three dimensions of strides. yaksa has one
// for each nesting of two, and a launch for each instance beyond. Here any nesting is a list of
// leaves with their loops. One kernel executes all leaves of all jobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dtype/pack/copy_plan.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::dtype::device {

/// Names the way in which a step of a loop moves the pointer.
enum class LoopKind : std::uint8_t {
  strided,     ///< step i: i * stride
  near_table,  ///< step i: entry i of a table of 32-bit displacements
  far_table,   ///< step i: entry i of a table of 64-bit displacements
  runs,        ///< element i: the displacement of its run, and `stride` for each element before it
               ///< in the run
  rule         ///< element i: the displacement of its bucket, and `stride` for each element before
               ///< it
};

/// Describes one loop around a leaf. Step i is at packed offset i * packed_stride.
struct Loop {
  LoopKind kind = LoopKind::strided;
  std::int64_t count = 1;  ///< steps; runs and rules: elements
  std::int64_t stride = 0;
  std::int64_t packed_stride = 0;
  std::int64_t entries = 0;  ///< runs: number of runs; rules: number of buckets
  std::int64_t table = -1;   ///< byte offset of the displacements in the tables; -1: none
  std::int64_t ends = -1;    ///< byte offset of the ends of runs or buckets, in elements, in the
                             ///< tables
  std::int32_t rule = -1;    ///< index in DevicePlan::rules()
  std::uint64_t alignment_bits = 0;  ///< bitwise OR of all that moves the pointer except strides
  bool operator==(const Loop&) const = default;
};

/// Describes `run` consecutive bytes in loops, the innermost loop first. The last loop also runs
/// over the instances of a call: its count is per instance.
struct Leaf {
  std::int64_t displacement = 0;   ///< from the buffer argument
  std::int64_t packed_offset = 0;  ///< in one instance
  std::int64_t run = 0;
  std::vector<Loop> loops;
};

/// Holds the leaves of a PackPlan and the tables of their loops. Tables are displacements of lists
/// and ends of runs; strided types have none. Immutable.
class DevicePlan {
 public:
  /// Flattens a plan. A list of at most kMaxSplit runs of different lengths becomes a leaf for each
  /// run; longer lists stay lists. O(loops + displacements).
  explicit DevicePlan(const PackPlan& plan);

  /// Flattens the nests and pieces of a CopyPlan. Displacements are addresses of the source, and
  /// packed offsets are addresses of the destination. O(nests + pieces).
  explicit DevicePlan(const detail::CopyProgram& program);

  const std::vector<Leaf>& leaves() const { return leaves_; }
  std::span<const std::byte> tables() const { return std::as_bytes(std::span(tables_)); }
  const std::vector<BucketRule>& rules() const { return rules_; }

  static constexpr std::int64_t kMaxSplit = 16;

 private:
  friend class Flattener;
  std::vector<Leaf> leaves_;
  std::vector<std::int64_t> tables_;  // 32-bit tables are padded to multiples of 8 bytes
  std::vector<BucketRule> rules_;
};

}  // namespace halocline::dtype::device
