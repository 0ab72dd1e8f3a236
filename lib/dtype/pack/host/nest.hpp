// SPDX-License-Identifier: BSD-3-Clause
// Describes loops over runs, and the compiled code that copies them on the host.
//
// Best peer: [PEA21] looks its kernel up by dimension and word size at every call. Here the kernels
// for the loops of a plan are chosen once, at its first use on the host.
#pragma once

#include <array>
#include <cstddef>
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

/// Holds the distances in bytes from the runs of a nest to those of its twins, nests that differ
/// from it only in their begin.
struct TwinDistances {
  static constexpr std::size_t kMost = 3;
  std::array<Address, kMost> memory{}, packed{};
};

/// Copies the runs of a nest, each together with the same run of its twins.
using TwinKernel = void (*)(const Nest& nest, Address memory, Address packed,
                            const TwinDistances& apart);

/// Returns a kernel that copies a nest with `twins` twins. It also serves the nests that
/// choose_kernel() names. Null unless there are one or three twins and the width of the runs has a
/// Fixed copy; longer runs gain nothing. O(1).
TwinKernel choose_twin_kernel(const Nest& nest, std::size_t twins);

/// Returns a kernel that packs the runs of a nest past the caches. Null if they are too short for
/// that, or if the processor has no such stores. Before another thread or process reads the bytes,
/// end_streams() must be called. O(1).
NestKernel choose_streaming_kernel(const Nest& nest);
/// Orders the stores of streaming kernels before all later stores.
void end_streams();

}  // namespace halocline::dtype::host
