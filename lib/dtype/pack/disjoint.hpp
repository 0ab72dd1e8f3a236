// SPDX-License-Identifier: BSD-3-Clause
// Looks for bytes that unpacking writes twice: their last value depends on the order of writes.
//
// Best peer: no MPI library looks; the standard calls such receives erroneous (MPI-4.0, 4.1.11).
#pragma once

#include <cstdint>

#include "dtype/pack/pack_plan.hpp"

namespace halocline::dtype {

/// Returns a number of instances of the plan's type that certainly hold no byte of memory twice.
///
/// It is the largest std::int64_t if that is true for any number, and 0 if one instance holds a
/// byte twice. It may be lower than the highest such number.
///
/// In one case only the strides count, and the result is 0 if they prove nothing: more than two
/// million blocks with large gaps, which are in no order or interleave.
///
/// Complexity:
/// - O(levels) if the strides prove that any number is free of overlaps
/// - O(blocks) for blocks in ascending order that do not interleave
/// - O(bytes / word_bytes()) for blocks that are dense in memory
/// - O(blocks log blocks) for all other types, with up to 64 bytes of memory for each block
///
/// Throws std::bad_alloc.
std::int64_t disjoint_instances(const PackPlan& plan);

}  // namespace halocline::dtype
