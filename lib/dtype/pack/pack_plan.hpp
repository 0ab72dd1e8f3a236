// SPDX-License-Identifier: BSD-3-Clause
// Describes what a packer executes: the loops of a datatype in the order in which they run fastest.
// It is the third step from a datatype to its plan; make_plan() does all three, see type_tree.hpp.
// `halocline inspect --verbose` prints the result of each step. The example there becomes
//
//     rows of 16-byte runs, loops from the inside 24 x 64 -> 16
//
// The instances of a call are part of these loops, or a loop around them. A packer executes them:
// the host's is copy_range() in host/copy_range.cpp. An exchange (comm/exchange/exchange_plan.hpp)
// makes a plan for each type of its jobs.
//
// Words: a run is consecutive bytes. A nest is loops around runs of one length (Kind::strided). A
// row is the innermost loop of a nest, and tiles are its two innermost loops if memory prefers the
// outer one. A list has entries at displacements of their own (Kind::blocks, Kind::runs). An atom
// is a short run of a repeated body, and a part a nest of it.
//
// Best peer: [PEA21] looks a type's kernel up at every call and adds a grid dimension for the
// count. A PackPlan is an owned, immutable object that serves any count without a look-up, a
// compilation or, after its first use, an allocation (errata B.13).
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dtype/canonical/dataloop.hpp"
#include "dtype/pack/attachment.hpp"
#include "support/error.hpp"

namespace halocline::dtype {

namespace detail {

inline constexpr std::int64_t kLineBytes = 64;  ///< of a cache line

/// Is a StridedLoop in the order of its execution.
///
/// Displacements and offsets count from the op that holds this one, its owner. The height of a
/// level is the number of levels inside of it in packed order: 0 for the innermost level. A box is
/// a range of steps of the level of one height. Lower levels run in full, and higher levels do not
/// run.
struct StridedOp {
  std::int64_t displacement = 0;   ///< from the displacement of the owner
  std::int64_t packed_offset = 0;  ///< from the packed offset of the owner
  std::int64_t run = 0;
  std::vector<LoopLevel> levels;  ///< in the order of execution, the innermost loop first
  /// Height of levels[0]. All other levels keep their packed order behind it. If it is not 0, the
  /// two innermost loops run in tiles.
  int innermost_height = 0;
  /// Is the largest number of steps of the level of the highest height that unpacking may execute
  /// in any order, since no two runs overlap. Without tiles, the order is that of the type map
  /// anyway.
  std::int64_t free_steps = std::numeric_limits<std::int64_t>::max();

  /// Returns the highest height.
  int top() const { return static_cast<int>(levels.size()) - 1; }
  const LoopLevel& level(int height) const {
    const auto place = height == innermost_height  ? 0
                       : height < innermost_height ? height + 1
                                                   : height;
    return levels[static_cast<std::size_t>(place)];
  }
  bool operator==(const StridedOp&) const = default;
};

/// Returns the index of the level, in packed order, to execute innermost.
///
/// Packed order is right if all of a cache line is used before the line is gone. It would fetch
/// lines several times if the shortest stride in memory is below a line and belongs to an outer
/// level. In that case this level and the innermost level become the two innermost loops. The
/// packer runs them in tiles that use whole lines on both sides.
int innermost_level(std::int64_t run, std::span<const LoopLevel> levels);

/// Returns the highest number of steps of the last level with which no two runs overlap, as far as
/// the strides tell. Each stride must be at least the span of all levels with shorter strides.
/// Returns 0 if the levels inside of the last one overlap already. Needs at least one level.
std::int64_t steps_without_overlap(std::int64_t run, const std::vector<LoopLevel>& levels);

/// Is a short piece of a repeated body: 1, 2, 4, 8 or 16 bytes.
struct Atom {
  static constexpr std::int64_t kMaxBytes = 16;
  std::int64_t displacement, packed_offset, bytes;
  bool operator==(const Atom&) const = default;
};

/// Holds atoms that are copied together, widest first.
struct AtomGroup {
  static constexpr std::size_t kMaxSize = 4;
  std::size_t size = 0;
  std::array<Atom, kMaxSize> atoms = {};
  bool operator==(const AtomGroup&) const = default;
};

/// Describes one loop of a datatype. Children are named by their index among the ops.
///
/// All kinds use `kind` and `size`. Lists are the kinds `blocks` and `runs`. Each kind uses these:
///
/// | kind | further members |
/// |---|---|
/// | strided | strided |
/// | blocks | count, child_size, separate_runs, displacements or near_displacements |
/// | runs | count, separate_runs, and displacements with ends, or rule with child_size |
/// | repeat | count, stride, child_size, children; groups to free_repetitions |
/// | each | count, child_size, children, displacements |
/// | buckets | count, stride, child_size, children, rule; groups to free_repetitions |
/// | members | count, children, displacements, ends |
struct Op {
  enum class Kind : std::uint8_t {
    strided,  ///< `strided`
    blocks,   ///< a list: `count` runs of `child_size` bytes at (near_)displacements
    runs,     ///< a list: `count` runs, run i at displacement i, ending at ends[i] in the packed
              ///< bytes; with a `rule`, the rule's buckets, whose elements have `child_size` bytes
    repeat,   ///< `count` children, `stride` bytes apart
    each,     ///< the child at each of `count` displacements
    buckets,  ///< `count` children in the buckets of `rule`, `stride` bytes apart in each bucket
    members   ///< children[i] at displacements[i], ending at ends[i] in the packed bytes
  };
  Kind kind = Kind::strided;
  std::int64_t size = 0;  ///< packed bytes
  std::int64_t count = 0;
  std::int64_t stride = 0;
  std::int64_t child_size = 0;     ///< packed bytes of a repeated child or element
  std::int64_t separate_runs = 0;  ///< lists: runs that do not continue the run before
  StridedOp strided;
  std::vector<std::int64_t> displacements;
  std::vector<std::int32_t> near_displacements;  ///< blocks: in place of displacements if 32 bits
                                                 ///< hold them all
  std::vector<std::int64_t> ends;
  std::optional<BucketRule> rule;
  std::vector<std::int32_t> children;
  /// repeat, buckets: one child, taken apart into groups of atoms and strided loops. The atoms are
  /// its short runs. Each strided loop has the repetition as its level of highest height. Groups
  /// and parts are executed one after the other for `chunk` repetitions. 0: the child stays whole.
  std::vector<AtomGroup> groups;
  std::vector<StridedOp> parts;
  std::int64_t chunk = 0;
  /// The most repetitions that may be unpacked part by part, since no two parts overlap.
  std::int64_t free_repetitions = 0;

  bool operator==(const Op&) const = default;
};

/// Tells if an op is a list: its entries are runs of memory.
inline bool is_list(const Op& op) {
  return op.kind == Op::Kind::blocks || op.kind == Op::Kind::runs;
}
/// Returns the end of entry i of a list of blocks or runs in the packed bytes of the list.
inline std::int64_t end_of(const Op& op, std::int64_t i) {
  if (op.kind == Op::Kind::blocks) return (i + 1) * op.child_size;
  return op.rule ? op.rule->end(i) * op.child_size : op.ends[static_cast<std::size_t>(i)];
}
/// Returns the displacement of entry i of a list.
inline std::int64_t displacement_of(const Op& op, std::int64_t i) {
  if (op.rule) return op.rule->displacement(i);
  const auto at = static_cast<std::size_t>(i);
  return op.near_displacements.empty() ? op.displacements[at] : op.near_displacements[at];
}

/// Holds all ops of a plan.
struct Program {
  Op root;                     ///< its outermost loop also runs over the instances of a call: its
                               ///< count is per instance
  std::vector<Op> ops;         ///< all ops except the root
  std::int32_t instance = -1;  ///< index of the op for count 1: the body without the loop over
                               ///< instances, or a short list that is faster; -1: the root serves
  std::int64_t start = 0;
  TypeBounds bounds;
  std::int64_t word_bytes = 1;
  Attachment attachment;  ///< the kernels or tables of each back end

  /// Returns the op to begin with for `count` instances.
  const Op& entry(std::int64_t count) const {
    return count == 1 && instance >= 0 ? ops[static_cast<std::size_t>(instance)] : root;
  }
  /// Returns the loops of one instance, if its entry is strided: without the loop over instances.
  std::span<const LoopLevel> instance_levels() const {
    const std::span<const LoopLevel> levels = entry(1).strided.levels;
    return levels.empty() || levels.back().count > 1 ? levels : levels.first(levels.size() - 1);
  }
  bool operator==(const Program&) const = default;
};

}  // namespace detail

/// Is a compiled pack and unpack of any number of instances of one datatype. Immutable; copies
/// share it, also between threads.
class PackPlan {
 public:
  /// Compiles `form`. O(loops + displacements).
  explicit PackPlan(CanonicalForm form);

  /// Returns the bytes that `count` instances take in the packed stream.
  std::int64_t packed_bytes(std::int64_t count) const { return program_->bounds.size * count; }

  const TypeBounds& bounds() const { return program_->bounds; }

  /// Returns the width in bytes of the widest word, at most 16, with which accesses are aligned if
  /// the buffers are.
  ///
  /// It is a power of two. It divides everything that moves a pointer: start, runs, all strides,
  /// packed strides and displacements, extent and size (errata B.5).
  std::int64_t word_bytes() const { return program_->word_bytes; }

  /// Returns the bytes of all tables (levels, displacements). A call reads only those for its
  /// count.
  std::int64_t metadata_bytes() const;

  const detail::Program& program() const { return *program_; }

  bool operator==(const PackPlan& other) const { return *program_ == *other.program_; }

 private:
  std::shared_ptr<const detail::Program> program_;
};

/// Describes a plan for people: its ops in the order of execution from the root inwards, one a
/// line.
std::string to_string(const PackPlan& plan);

/// Returns the plan of an expression: translates, canonicalizes and compiles it. O(constructor
/// arguments). Throws ConfigError like translate().
PackPlan make_plan(const TypeExpr& expr);

/// Returns the plan of an MPI datatype, from the constructors that MPI remembers. Local;
/// O(constructor arguments).
Result<PackPlan> make_plan(MPI_Datatype handle);

}  // namespace halocline::dtype
