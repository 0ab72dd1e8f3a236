// SPDX-License-Identifier: BSD-3-Clause
// The canonical form of a datatype: dataloops [RMG03], reduced to the fewest and longest loops that
// keep the packed bytes.
//
// Best peers: MPICH's dataloops, which fold a count into a vector but neither fold nested vectors
// nor re-roll index lists, and [PEA21]'s StridedBlock, which sorts its levels by stride and thereby
// changes the packed bytes (errata B.1). Here every loop carries its packed stride beside its
// source stride, so loops may run in any order; runs that adjoin are one, an index list that
// repeats is a loop over its pattern, and strided members of a struct stay strided.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "dtype/bucket_rule.hpp"
#include "dtype/type_tree.hpp"

namespace halocline::dtype {

/// One loop: `count` steps of `stride` bytes in the user's memory and of `packed_stride` bytes in
/// the packed stream.
struct LoopLevel {
  std::int64_t count;
  std::int64_t stride;
  std::int64_t packed_stride;
  bool operator==(const LoopLevel&) const = default;
};

struct Dataloop;

/// Contig, and vectors of it: the packed bytes [p, p + run) with p = sum_k i_k *
/// levels[k].packed_stride are the bytes from sum_k i_k * levels[k].stride on, for all 0 <= i_k <
/// levels[k].count.
///
/// Levels stand in packed order: packed_stride is `run` in levels[0], and that of the level before
/// times its count in all others. No level has count 1, and none could be folded into the run or
/// into another level.
struct StridedLoop {
  std::int64_t run;
  std::vector<LoopLevel> levels;
  bool operator==(const StridedLoop&) const = default;
  /// Number of contiguous runs.
  std::int64_t runs() const;
};
/// Vector over something that is not strided: `count` >= 2 bodies, `stride` bytes apart.
struct VectorLoop {
  std::int64_t count, stride;
  std::shared_ptr<const Dataloop> body;
  bool operator==(const VectorLoop& other) const;
};
/// Blockindexed: one body at each displacement (bytes); at least 2.
struct BlockIndexedLoop {
  std::vector<std::int64_t> displacements;
  std::shared_ptr<const Dataloop> body;
  bool operator==(const BlockIndexedLoop& other) const;
};
/// Indexed: runs of lengths[i] bytes at displacements[i]; at least 2, not all of one length, none
/// adjoins the next.
struct IndexedLoop {
  std::vector<std::int64_t> displacements, lengths;
  bool operator==(const IndexedLoop&) const = default;
};
/// Indexed without lists of displacements: in bucket i, rule.length(i) bodies `stride` bytes apart,
/// the first at rule.displacement(i).
struct RuleLoop {
  BucketRule rule;
  std::int64_t stride;
  std::shared_ptr<const Dataloop> body;
  bool operator==(const RuleLoop& other) const;
  /// Whether each bucket is one run of bytes.
  bool is_of_runs() const;
};
/// Struct: a loop of its own at each displacement; at least 2.
struct StructLoop {
  std::vector<std::int64_t> displacements;
  std::vector<Dataloop> members;
  bool operator==(const StructLoop& other) const;
};

/// One loop, immutable. Its first packed byte is at displacement 0 of it.
struct Dataloop {
  std::int64_t size;  ///< packed bytes
  std::variant<StridedLoop, VectorLoop, BlockIndexedLoop, IndexedLoop, RuleLoop, StructLoop> loop;
  bool operator==(const Dataloop&) const = default;
};

/// The canonical form of types that are strided as a whole, for comparisons and people: the packed
/// bytes of StridedLoop from `start` on, with the levels in ascending order of |stride| (of packed
/// stride where those are equal). A type without data has run 0 and no levels. Two strided
/// datatypes with the same packed bytes, lb and extent have equal nests. [PEA21]'s StridedBlock is
/// its view when the packed strides are the natural ones.
struct LoopNest {
  std::int64_t start = 0;
  std::int64_t run = 0;
  std::vector<LoopLevel> levels;
  TypeBounds bounds;

  bool operator==(const LoopNest&) const = default;
  /// True if one instance is a single run of bytes.
  bool contiguous() const { return levels.empty(); }
};

/// One instance of a datatype.
struct CanonicalForm {
  std::int64_t start = 0;  ///< byte displacement of the first packed byte from the buffer argument
  Dataloop root{0, StridedLoop{0, {}}};
  TypeBounds bounds;  ///< extent separates the instances when a call packs several (errata B.3)

  bool operator==(const CanonicalForm&) const = default;
  /// The nest, if the type is strided as a whole.
  std::optional<LoopNest> nest() const;
  /// Number of contiguous runs in one instance.
  std::int64_t runs() const;
};

/// The canonical form of a tree. O(nodes + displacements); types without data, loops of count 1 and
/// displacements of one entry leave no trace but their shift.
///
/// - Vectors: [PEA21] section 3.2 with the corrections of errata B.1, B.2, B.6 and B.11.
/// - Index lists: blocks that adjoin are merged [RMG03 section 2.1]; displacements of one step are
///   a vector; a list that repeats itself is a vector over its shortest pattern; one that repeats a
///   nest at other distances keeps one displacement for each nest [KT15], if that is found within
///   30 ns for each block.
/// - Buckets with a rule keep it, unless all are of one length.
/// - Structs: nested ones are spliced, members that are runs become one index list, equal members
///   a block-indexed list.
CanonicalForm canonicalize(const TypeTree& tree);

/// The cost of a form in the additive model of [KT15] section 2.3 with all node costs 6 and the
/// cost of a look-up 1: 6 for each leaf, vector level and list, 1 for each displacement of a
/// block-indexed list or length of a rule, 2 for each entry (a displacement with a length or a
/// member) of an indexed list or a struct, 6 and 1 for a start that is not 0.
std::int64_t cost(const CanonicalForm& form);

/// For people and golden tests: "start 10520, run 64, levels [8 x 128 -> 64]".
std::string to_string(const LoopNest& nest);

/// For people: "vector(10 x 40, indexed(4 runs, 20 bytes))".
std::string to_string(const Dataloop& loop);

}  // namespace halocline::dtype
