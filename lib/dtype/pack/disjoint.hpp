// SPDX-License-Identifier: BSD-3-Clause
// Looks for bytes that unpacking writes twice: what is left there depends on the order of writes.
//
// Best peer: no MPI library looks; the standard calls such receives erroneous (MPI-4.0, 4.1.11).
#pragma once

#include <cstdint>

#include "dtype/pack/pack_plan.hpp"

namespace halocline::dtype {

/// Returns a number of instances of the plan's type that certainly hold no byte of memory twice.
///
/// It is the largest std::int64_t if that is so of any number, and 0 if one instance holds a byte
/// twice. It may be less than the highest such number. For more than two million blocks that leave
/// large gaps and are in no order, or interleave, it is what the strides tell, or 0.
///
/// Complexity: O(levels) if the strides tell that it is any number. O(blocks) for blocks in order
/// that do not interleave. O(bytes / word_bytes()) where the places are dense. Otherwise O(blocks
/// log blocks), with up to 64 bytes of memory for each block. Throws std::bad_alloc.
std::int64_t disjoint_instances(const PackPlan& plan);

}  // namespace halocline::dtype
