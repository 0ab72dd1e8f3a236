// SPDX-License-Identifier: BSD-3-Clause
// Packs and unpacks any range of the packed stream on the host.
#pragma once

#include <cstdint>

#include "dtype/pack/fused_plan.hpp"
#include "dtype/pack/host/nest.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::dtype::host {

/// Chooses the kernels of a plan, which its first use would choose otherwise. O(loops). Throws
/// std::bad_alloc.
void prepare(const PackPlan& plan);

/// Copies the bytes [first, last) of the packed stream of `count` instances at `buffer` from or to
/// `packed`.
///
/// `packed` is the place of byte `first`. 0 <= first, last <= plan.packed_bytes(count).
/// O(bytes + depth + log blocks). The first use of a plan chooses its kernels, O(loops); all other
/// uses allocate nothing.
template <CopyDirection kDirection>
void copy_range(const PackPlan& plan, Address buffer, std::int64_t count, std::int64_t first,
                std::int64_t last, Address packed);

/// Copies the bytes [first, last) of the packed bytes of all jobs, counted in their order. Packed
/// bytes are at their packed offsets in the buffer at `packed`.
template <CopyDirection kDirection>
void copy_range(const FusedPlan& plan, std::int64_t first, std::int64_t last, Address packed);

}  // namespace halocline::dtype::host
