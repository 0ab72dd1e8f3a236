// SPDX-License-Identifier: BSD-3-Clause
// The canonical strided form: what every equivalent construction of one strided layout ends in.
//
// Best peer: [PEA21]'s StridedBlock, which sorts its levels by stride and thereby changes the
// packed bytes (errata B.1). Here each level carries its packed stride beside its source stride, so
// levels may stand in any order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dtype/support/error.hpp"
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

/// One instance of a strided datatype: the packed bytes [p, p + run) with p = sum_k i_k *
/// levels[k].packed_stride are the bytes from start + sum_k i_k * levels[k].stride on, for all 0 <=
/// i_k < levels[k].count.
///
/// Canonical: no level has count 1, none could be folded into the run or into another level, and
/// levels stand in ascending order of |stride| (of packed stride where those are equal), so
/// levels[0] is the innermost. A type without data has run 0 and no levels. Two datatypes with the
/// same packed bytes, lb and extent have equal nests.
struct LoopNest {
  std::int64_t start = 0;  ///< byte displacement of the first packed byte from the buffer argument
  std::int64_t run = 0;    ///< contiguous bytes innermost; dimension 0 of [PEA21]'s StridedBlock
  std::vector<LoopLevel> levels;
  TypeBounds bounds;  ///< extent separates the instances when a call packs several (errata B.3)

  bool operator==(const LoopNest&) const = default;

  /// True if one instance is a single run of bytes.
  bool contiguous() const { return levels.empty(); }
  /// Number of contiguous runs in one instance.
  std::int64_t runs() const;
};

/// The canonical nest of a tree that consists of Leaf, Vec and Idx with one displacement, or has no
/// data. O(depth log depth).
///
/// [PEA21] section 3.2 with these corrections: elision keeps the removed level's offset (errata
/// B.2) and also removes levels above a leaf (B.11), the order of levels never changes the packed
/// bytes (B.1), zero counts empty the nest (B.6).
LoopNest canonicalize(const TypeTree& tree);

/// The same for any tree; one with several displacements anywhere has no nest of this form.
Result<LoopNest> strided_nest(const TypeTree& tree);

/// For people and golden tests: "start 10520, run 64, levels [8 x 128 -> 64]".
std::string to_string(const LoopNest& nest);

}  // namespace halocline::dtype
