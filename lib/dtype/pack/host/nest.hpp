// SPDX-License-Identifier: BSD-3-Clause
// Loops over runs, and the compiled code that copies them on the host.
//
// Best peer: [PEA21] looks its kernel up by dimension and word size at every call; a plan holds the
// one for its loops.
#pragma once

#include <cstdint>
#include <span>

#include "dtype/dataloop.hpp"

namespace halocline::dtype::host {

// Addresses are integers here: with MPI_BOTTOM there is no array to stay inside of.
using Address = std::uintptr_t;

enum class Direction { pack, unpack };

/// Loops over runs of `run` bytes; levels[0] is the innermost.
struct Nest {
  std::int64_t run;
  std::span<const LoopLevel> levels;
};

/// Copies all runs of a nest between memory and the packed stream.
using NestKernel = void (*)(const Nest& nest, Address memory, Address packed);

struct NestKernels {
  NestKernel pack = nullptr, unpack = nullptr;

  template <Direction kDirection>
  NestKernel get() const {
    return kDirection == Direction::pack ? pack : unpack;
  }
  bool operator==(const NestKernels&) const = default;
};

/// Chooses the kernels for a nest, and for nests that differ from it in one count: that of the only
/// level, of the last of several levels, or of any level that runs in tiles. If it
/// `unpacks_in_order`, unpacking ignores the order of the levels and follows the packed bytes.
/// O(1).
NestKernels choose_kernels(const Nest& nest, bool unpacks_in_order);

/// Unpacks the runs of a nest in the order of the packed bytes, whatever the order of its levels
/// is.
void unpack_in_order(const Nest& nest, Address memory, Address packed);

/// Copies, beside each run of a nest, another one that is so many bytes apart on either side.
using TwinKernel = void (*)(const Nest& nest, Address memory, Address packed, Address memory_apart,
                            Address packed_apart);

/// What copies this nest, and those that choose_kernels() says, with twins; null where the runs are
/// too long to gain by that. O(1).
TwinKernel choose_twin_kernel(const Nest& nest);

}  // namespace halocline::dtype::host
