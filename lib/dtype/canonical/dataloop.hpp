// SPDX-License-Identifier: BSD-3-Clause
// Defines the canonical form of a datatype: dataloops [RMG03], reduced to the fewest and longest
// loops that keep the packed bytes. It is the second step from a datatype to its plan, see
// type_tree.hpp. The tree of the example there,
//
//     idx(1,<8>,vec(4,384,vec(6,64,vec(2,8,leaf(8)))))
//
// becomes "start 8, run 16, levels [24 x 64 -> 16]". The innermost Vec is one run of 16 bytes. The
// two outer Vecs continue each other, so they are one loop of 24 steps. A step is 64 bytes in
// memory and 16 in the packed bytes. The Idx is the start. The third step is pack/pack_plan.hpp.
//
// Two runs adjoin if one ends where the next begins, in memory and in the packed bytes. A nest is
// loops around one run. A list is first searched for a pattern that repeats, then its neighbours
// that adjoin are merged.
//
// Best peers: MPICH's dataloops fold a count into a vector, but do not fold nested vectors or
// re-roll index lists. [PEA21]'s StridedBlock sorts its levels by stride, which changes the packed
// bytes (errata B.1). Here every loop carries its stride in the packed bytes beside its stride in
// memory, so loops may run in any order. Runs that adjoin are one run. An index list that repeats
// is a loop over its pattern. Strided members of a struct stay strided.
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

/// Describes one loop: `count` steps of `stride` bytes in the user's memory and of `packed_stride`
/// bytes in the packed bytes.
struct LoopLevel {
  std::int64_t count;
  std::int64_t stride;
  std::int64_t packed_stride;
  bool operator==(const LoopLevel&) const = default;
};

struct Dataloop;

/// Describes a contiguous run, and vectors of it. For all indices 0 <= i_k < levels[k].count:
///
///     packed bytes [p, p + run), p = sum_k i_k * levels[k].packed_stride
///     are the bytes of memory from sum_k i_k * levels[k].stride on
///
/// Levels stand in packed order. The packed stride of levels[0] is `run`. That of levels[k] is
/// levels[k - 1].packed_stride * levels[k - 1].count. No level has count 1. No level could be
/// folded into the run or into another level.
struct StridedLoop {
  std::int64_t run;
  std::vector<LoopLevel> levels;
  bool operator==(const StridedLoop&) const = default;
  /// Returns the number of contiguous runs.
  std::int64_t runs() const;
};
/// Describes a vector over a body that is not strided: `count` >= 2 bodies, `stride` bytes apart.
struct VectorLoop {
  std::int64_t count, stride;
  std::shared_ptr<const Dataloop> body;
  bool operator==(const VectorLoop& other) const;
};
/// Describes a block-indexed list: one body at each displacement (bytes), at least 2.
struct BlockIndexedLoop {
  std::vector<std::int64_t> displacements;
  std::shared_ptr<const Dataloop> body;
  bool operator==(const BlockIndexedLoop& other) const;
};
/// Describes an indexed list: runs of lengths[i] bytes at displacements[i] (bytes). It has at least
/// 2 runs, not all of one length, and none adjoins the next.
struct IndexedLoop {
  std::vector<std::int64_t> displacements, lengths;
  bool operator==(const IndexedLoop&) const = default;
};
/// Describes an indexed list without displacements: bucket i has rule.length(i) bodies. They are
/// `stride` bytes apart, the first at rule.displacement(i).
struct RuleLoop {
  BucketRule rule;
  std::int64_t stride;
  std::shared_ptr<const Dataloop> body;
  bool operator==(const RuleLoop& other) const;
  /// Tells if each bucket is one run of bytes.
  bool is_of_runs() const;
};
/// Describes a struct: a loop of its own at each displacement (bytes), at least 2.
struct StructLoop {
  std::vector<std::int64_t> displacements;
  std::vector<Dataloop> members;
  bool operator==(const StructLoop& other) const;
};

/// Holds one loop. Immutable. Its first packed byte is at displacement 0 of the loop.
struct Dataloop {
  std::int64_t size;  ///< packed bytes
  std::variant<StridedLoop, VectorLoop, BlockIndexedLoop, IndexedLoop, RuleLoop, StructLoop> loop;
  bool operator==(const Dataloop&) const = default;
};

/// Describes a type that is strided as a whole, for comparisons and people: a StridedLoop from
/// displacement `start` on. Levels are in ascending order of |stride|, or of packed stride if those
/// are equal. A type without data has run 0 and no levels. Two strided datatypes with the same
/// packed bytes, lb and extent have equal nests. [PEA21]'s StridedBlock is the same without the
/// packed strides, if these are the natural ones.
struct LoopNest {
  std::int64_t start = 0;
  std::int64_t run = 0;
  std::vector<LoopLevel> levels;
  TypeBounds bounds;

  bool operator==(const LoopNest&) const = default;
  /// Tells if one instance is a single run of bytes.
  bool contiguous() const { return levels.empty(); }
};

/// Holds the canonical form of one instance of a datatype.
struct CanonicalForm {
  std::int64_t start = 0;  ///< bytes from the buffer argument to the first packed byte
  Dataloop root{0, StridedLoop{0, {}}};
  TypeBounds bounds;  ///< the extent separates instances of one call (errata B.3)

  bool operator==(const CanonicalForm&) const = default;
  /// Returns the nest if the type is strided as a whole, else nullopt.
  std::optional<LoopNest> nest() const;
  /// Returns the number of contiguous runs in one instance.
  std::int64_t runs() const;
};

/// Returns the canonical form of a tree. O(nodes + displacements). Types without data leave no
/// trace. Loops of count 1 and lists of one displacement leave only their shift.
///
/// - Vectors: [PEA21] section 3.2 with the corrections of errata B.1, B.2, B.6 and B.11.
/// - Index lists: blocks that adjoin are merged [RMG03 section 2.1]. Displacements at one distance
///   become a vector. A list that repeats itself becomes a vector over its shortest pattern. A list
///   that repeats a nest at other distances keeps one displacement for each nest [KT15]. The search
///   for nests takes at most 30 ns for each block.
/// - Buckets with a rule keep it, unless they are few, all of one length, or shorter as a list.
/// - Structs: nested structs are spliced. Members that are runs become one index list. Equal
///   members become a block-indexed list.
CanonicalForm canonicalize(const TypeTree& tree);

/// Returns the cost of a form in the additive model of [KT15] section 2.3. All nodes cost 6, and a
/// look-up costs 1:
///
/// - 6 for each leaf, vector level and list
/// - 1 for each displacement of a block-indexed list, and for each length of a rule
/// - 2 for each entry of an indexed list or a struct: a displacement with a length or a member
/// - 7 for a start that is not 0
///
/// A form without data costs 0.
std::int64_t cost(const CanonicalForm& form);

/// Returns the nest as text, for people and golden tests:
/// "start 10520, run 64, levels [8 x 128 -> 64]".
std::string to_string(const LoopNest& nest);

/// Returns the loop as text, for people: "vector(10 x 40, indexed(4 runs, 20 bytes))".
std::string to_string(const Dataloop& loop);

}  // namespace halocline::dtype
