// SPDX-License-Identifier: BSD-3-Clause
// Whether unpacking writes a byte twice: then what is left there depends on the order of writes.
//
// Best peer: no MPI library looks; the standard calls such receives erroneous (MPI-4.0, 4.1.11).
#pragma once

#include <cstdint>

#include "dtype/pack/pack_plan.hpp"

namespace halocline::dtype {

/// Returns the highest number of instances that are known to hold no byte of memory twice.
///
/// It is the largest std::int64_t if that is so for all numbers, and 0 if one instance holds a byte
/// twice. Types that interleave their instances are looked at with `wanted` instances, unless the
/// strides tell. 0 if these have more than four million blocks in no order, too many to sort.
/// O(blocks) where the blocks stand in order, else O(blocks log blocks). Throws std::bad_alloc.
///
/// \param wanted at least 1
std::int64_t disjoint_instances(const PackPlan& plan, std::int64_t wanted);

}  // namespace halocline::dtype
