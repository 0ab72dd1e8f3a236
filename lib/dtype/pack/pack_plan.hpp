// SPDX-License-Identifier: BSD-3-Clause
// What a packer executes: the loops of a datatype in the order in which they run fastest, with the
// instances of a call folded in or put around them.
//
// Best peer: [PEA21] looks a type's kernel up at every call and adds a grid dimension for the
// count; a PackPlan is an owned, immutable object that serves any count without a look-up, a
// compilation or an allocation (errata B.13).
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

#include "dtype/dataloop.hpp"
#include "dtype/pack/attachment.hpp"
#include "dtype/pack/host/nest.hpp"
#include "dtype/support/error.hpp"

namespace halocline::dtype {

namespace detail {

inline constexpr std::int64_t kLineBytes = 64;  ///< of a cache line

/// A StridedLoop to execute. Any leading part of its levels in packed order, the last of them cut
/// short, is a box: levels of lower rank than the cut one run in full, those of higher rank not at
/// all.
struct StridedOp {
  std::int64_t displacement = 0;   ///< from the displacement of what it belongs to
  std::int64_t packed_offset = 0;  ///< likewise
  std::int64_t run = 0;
  std::vector<LoopLevel> levels;  ///< in the order of execution, the innermost loop first
  /// The rank of levels[0]: its place in packed order, in which the others stand behind it. If it
  /// is not 0, the two innermost loops run in tiles.
  int innermost = 0;
  /// The most steps of the level of the highest rank with which unpacking may follow any order,
  /// since no two runs overlap. Without tiles the order is that of the type map anyway.
  std::int64_t free_steps = std::numeric_limits<std::int64_t>::max();

  /// The highest rank.
  int top() const { return static_cast<int>(levels.size()) - 1; }
  const LoopLevel& level(int rank) const {
    const auto place = rank == innermost ? 0 : rank < innermost ? rank + 1 : rank;
    return levels[static_cast<std::size_t>(place)];
  }
  bool operator==(const StridedOp&) const = default;
};

/// Which level of these, in packed order, to execute innermost. Packed order is right as long as it
/// uses what a cache line brings before the line is gone. Where another level than the innermost
/// one has the shortest stride in memory and that stride is shorter than a line, packed order would
/// fetch each line several times; then these two levels become the innermost, and the packer runs
/// them in tiles that use whole lines on both sides.
int innermost_level(std::int64_t run, std::span<const LoopLevel> levels);

/// Returns the highest number of steps of the last level with which no two runs overlap, as far as
/// the strides tell: each stride must be at least the span of all levels with shorter strides. 0 if
/// the other levels overlap already. At least one level.
std::int64_t steps_without_overlap(std::int64_t run, const std::vector<LoopLevel>& levels);

/// 1, 2, 4, 8 or 16 bytes of a repeated body.
struct Atom {
  static constexpr std::int64_t kMaxBytes = 16;
  std::int64_t displacement, packed_offset, bytes;
  bool operator==(const Atom&) const = default;
};

/// Atoms that are copied together, widest first.
struct AtomGroup {
  static constexpr std::size_t kMaxSize = 4;
  std::size_t size = 0;
  std::array<Atom, kMaxSize> atoms = {};
  bool operator==(const AtomGroup&) const = default;
};

/// One loop of a datatype, children by their index among the ops.
struct Op {
  enum class Kind : std::uint8_t {
    strided,  ///< `strided`
    blocks,   ///< `count` runs of `child_size` bytes at displacements or near_displacements
    runs,     ///< `count` runs, which end at ends[i] in the packed bytes, at displacements; or
              ///< both as `rule` says, whose elements are of `child_size` bytes
    repeat,   ///< `count` children, `stride` bytes apart
    each,     ///< the child at each of `count` displacements
    buckets,  ///< `count` children in the buckets of `rule`, in each of them `stride` bytes apart
    members   ///< children[i] at displacements[i], ending at ends[i]
  };
  Kind kind = Kind::strided;
  std::int64_t size = 0;  ///< packed bytes
  std::int64_t count = 0;
  std::int64_t stride = 0;
  std::int64_t child_size = 0;  ///< of a child that is repeated
  std::int64_t blocks = 0;      ///< of a list: how many runs do not continue the one before
  StridedOp strided;
  std::vector<std::int64_t> displacements;
  std::vector<std::int32_t> near_displacements;  ///< instead, where 32 bits hold them all
  std::vector<std::int64_t> ends;
  std::optional<BucketRule> rule;
  std::vector<std::int32_t> children;
  /// repeat, buckets: one child taken apart into groups of atoms, which together are its short
  /// runs, and strided loops, each with the repetition as its level of highest rank. Executed one
  /// after the other for `chunk` repetitions; 0 if the child stays whole.
  std::vector<AtomGroup> groups;
  std::vector<StridedOp> parts;
  std::int64_t chunk = 0;
  /// The most repetitions at once that may be unpacked part by part, since no two parts overlap.
  std::int64_t free_repetitions = 0;
  host::NestKernels kernels;  ///< strided: what copies all of it

  bool operator==(const Op&) const = default;
};

/// Where entry i of a list of blocks or runs ends in the packed bytes of the list.
inline std::int64_t end_of(const Op& op, std::int64_t i) {
  if (op.kind == Op::Kind::blocks) return (i + 1) * op.child_size;
  return op.rule ? op.rule->end(i) * op.child_size : op.ends[static_cast<std::size_t>(i)];
}
/// Where entry i of a list stands.
inline std::int64_t displacement_of(const Op& op, std::int64_t i) {
  if (op.rule) return op.rule->displacement(i);
  const auto at = static_cast<std::size_t>(i);
  return op.near_displacements.empty() ? op.displacements[at] : op.near_displacements[at];
}

/// All ops of a plan. The outermost loop of the root runs over the instances, too: as often for
/// each of them as it says.
struct Program {
  Op root;
  std::vector<Op> ops;         ///< all others
  std::int32_t instance = -1;  ///< the op that one instance is, if the root is not as good
  std::int64_t start = 0;
  TypeBounds bounds;
  std::int64_t word_bytes = 1;
  host::NestKernels one;  ///< what copies all of one instance, if its entry is strided
  Attachment attachment;  ///< what a device needs

  /// Where to begin for that many instances.
  const Op& entry(std::int64_t count) const {
    return count == 1 && instance >= 0 ? ops[static_cast<std::size_t>(instance)] : root;
  }
  /// All of one instance, if it is strided.
  host::Nest nest_of_one() const {
    const auto& strided = entry(1).strided;
    std::span<const LoopLevel> levels = strided.levels;
    if (!levels.empty() && levels.back().count == 1) levels = levels.first(levels.size() - 1);
    return {strided.run, levels};
  }
  bool operator==(const Program&) const = default;
};

}  // namespace detail

/// A compiled pack (and unpack) of any number of instances of one datatype. Immutable; copies share
/// it, also between threads.
class PackPlan {
 public:
  /// Compiles `form`. O(loops + displacements).
  explicit PackPlan(CanonicalForm form);

  /// Bytes that `count` instances take in the packed stream.
  std::int64_t packed_bytes(std::int64_t count) const { return program_->bounds.size * count; }

  const TypeBounds& bounds() const { return program_->bounds; }

  /// The largest power of two, at most 16, that divides everything which moves a pointer: start,
  /// runs, all strides, packed strides and displacements, extent and size (errata B.5). Accesses of
  /// that width are aligned if the buffers are.
  std::int64_t word_bytes() const { return program_->word_bytes; }

  /// Bytes of all tables (levels, displacements); a call reads those that are for its count.
  std::int64_t metadata_bytes() const;

  const detail::Program& program() const { return *program_; }

  bool operator==(const PackPlan& other) const { return *program_ == *other.program_; }

 private:
  std::shared_ptr<const detail::Program> program_;
};

/// For people: the ops from the root inwards, a line each, as they are executed.
std::string to_string(const PackPlan& plan);

/// The plan of an expression: translate, canonicalize, compile. O(constructor arguments). Throws
/// ConfigError as translate().
PackPlan make_plan(const TypeExpr& expr);

/// The plan of an MPI datatype: the same of what MPI remembers of its constructors. Local;
/// O(constructor arguments).
Result<PackPlan> make_plan(MPI_Datatype handle);

}  // namespace halocline::dtype
