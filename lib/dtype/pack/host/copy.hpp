// SPDX-License-Identifier: BSD-3-Clause
// The copy loops of the host packer: every loop over runs ends here.
//
// Best peer: Open MPI calls memcpy for every block, MPICH copies one basic element at a time. Here
// the width of a run is a constant of the loop that copies it, and loops whose shortest strides are
// in different levels run in tiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "dtype/dataloop.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::dtype::host {

// Addresses are integers here: with MPI_BOTTOM there is no array to stay inside of.
using Address = std::uintptr_t;

enum class Direction { pack, unpack };

/// Copies `count` steps of each level, all of them nested, runs of `run` bytes innermost: from
/// `memory` to `packed` or the other way. levels[0] is the innermost.
void copy_levels(Direction direction, std::int64_t run, std::span<const LoopLevel> levels,
                 Address memory, Address packed);

/// Copies every atom of the group level.count times, the level's strides apart.
void copy_group(Direction direction, const detail::AtomGroup& group, const LoopLevel& level,
                Address memory, Address packed);

/// Copies `bytes` consecutive bytes.
void copy_bytes(Direction direction, std::int64_t bytes, Address memory, Address packed);

/// Copies runs of `run` bytes at memory + displacements[i] from or to consecutive packed places.
void copy_blocks(Direction direction, std::int64_t run, std::span<const std::int32_t> displacements,
                 Address memory, Address packed);
void copy_blocks(Direction direction, std::int64_t run, std::span<const std::int64_t> displacements,
                 Address memory, Address packed);

/// Copies the runs between the ends[i], which are counted from `begin` packed bytes before
/// `packed`.
void copy_runs(Direction direction, std::span<const std::int64_t> displacements,
               std::span<const std::int64_t> ends, std::int64_t begin, Address memory,
               Address packed);

}  // namespace halocline::dtype::host
