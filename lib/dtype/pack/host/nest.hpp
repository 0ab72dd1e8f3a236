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
using detail::Direction;

/// Describes loops over runs of `run` bytes. levels[0] is the innermost.
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

struct NestKernels {
  NestKernel pack = nullptr, unpack = nullptr;

  template <Direction kDirection>
  NestKernel get() const {
    return kDirection == Direction::pack ? pack : unpack;
  }
};

/// Chooses the kernels for a nest. O(1).
///
/// They also serve nests that differ from it in one count. This is the count of the only level, of
/// the last of several levels, or of any level that runs in tiles.
///
/// \param nest the loops and their runs
/// \param unpacks_in_order if true, unpacking ignores the order of the levels and follows the
///   packed bytes
NestKernels choose_kernels(const Nest& nest, bool unpacks_in_order);

/// Unpacks the runs of a nest in the order of the packed bytes, whatever the order of its levels.
void unpack_in_order(const Nest& nest, Address memory, Address packed);

/// Copies the runs of a nest, each with a twin: a second run that is the given bytes apart in
/// memory and in the packed stream.
using TwinKernel = void (*)(const Nest& nest, Address memory, Address packed, Address memory_apart,
                            Address packed_apart);

/// Returns a kernel that copies a nest with twins. It also serves the nests that choose_kernels()
/// names. Null unless the width of the runs has a Fixed copy; longer runs gain nothing. O(1).
TwinKernel choose_twin_kernel(const Nest& nest);

}  // namespace halocline::dtype::host
