// SPDX-License-Identifier: BSD-3-Clause
// Describes loops over runs, and the compiled code that copies them on the host.
//
// Best peer: [PEA21] looks its kernel up by dimension and word size at every call. Here the kernels
// for the loops of a plan are chosen once, at its first use on the host.
#pragma once

#include <span>

#include "dtype/canonical/dataloop.hpp"
#include "dtype/pack/address.hpp"

namespace halocline::dtype::host {

using detail::Address;
using detail::CopyDirection;

/// Describes loops over runs of `run` bytes, for one call of a kernel. levels[0] is the innermost.
/// Refers to the levels of a StridedOp, which a plan owns, or of a CopyNest, which has addresses.
struct Nest {
  std::int64_t run;
  std::span<const LoopLevel> levels;
};

/// Tells if the two innermost loops of a nest run in tiles: their packed order is the other one.
inline bool is_tiled(std::span<const LoopLevel> levels) {
  return levels.size() > 1 && levels[0].packed_stride > levels[1].packed_stride;
}

/// Copies all runs of a nest between memory and the packed stream.
using NestKernel = void (*)(const Nest& nest, Address memory, Address packed);

/// Chooses the kernel for a nest. O(1).
///
/// It also serves nests that differ from this one in one count. This is the count of the only
/// level, of the last of several levels, or of any level that runs in tiles.
template <CopyDirection kDirection>
NestKernel choose_kernel(const Nest& nest);

/// Copies all runs of a nest.
template <CopyDirection kDirection>
void copy_nest(const Nest& nest, Address memory, Address packed) {
  choose_kernel<kDirection>(nest)(nest, memory, packed);
}

/// Copies the runs of a nest, each with a twin: a second run that is the given bytes apart in
/// memory and in the packed stream.
using TwinKernel = void (*)(const Nest& nest, Address memory, Address packed, Address memory_apart,
                            Address packed_apart);

/// Returns a kernel that copies a nest with twins. It also serves the nests that choose_kernel()
/// names. Null unless the width of the runs has a Fixed copy; longer runs gain nothing. O(1).
TwinKernel choose_twin_kernel(const Nest& nest);

}  // namespace halocline::dtype::host
