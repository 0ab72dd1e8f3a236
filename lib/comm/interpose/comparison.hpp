// SPDX-License-Identifier: BSD-3-Clause
// Compares what the engine packs with what MPI packs.
//
// Best peer: [PEA21] trusts its canonical form. But MPIs pack some types otherwise than their type
// maps say (results/vendor-bugs), and other ranks go by MPI's packs.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "dtype/pack/pack_plan.hpp"

namespace halocline::interpose {

/// Is the most bytes of an instance that packs_as_mpi() compares. A type of longer instances stays
/// MPI's, unless HALOCLINE_MPI is engine.
inline constexpr std::int64_t kLongestCompared = std::int64_t{1} << 25;

/// Tells if `plan` and MPI pack the same bytes: one instance, or with `several` two or three. MPI
/// may pack several instances in another way than one.
///
/// It packs memory of the library, in which each byte tells its place. A program's buffer may hold
/// nothing but zeros. It takes one pack by each for an instance, at least 2 us, and 2 us more for
/// each MiB that the instances span. Returns nullopt, without a comparison, for an instance of more
/// than kLongestCompared bytes and for instances that span more than 36 GB. Throws std::bad_alloc.
std::optional<bool> packs_as_mpi(const dtype::PackPlan& plan, MPI_Datatype handle, bool several);

/// Packs `count` instances at `buffer` by MPI, and compares the bytes with `packed`. Prints a line
/// on standard error if they differ. The engine's bytes are used anyway.
///
/// This is HALOCLINE_MPI=verify. It compares the program's data at every call, while packs_as_mpi()
/// compares memory of the library once for a type. Incomplete receives and memory of devices are
/// not compared. Compares nothing if there is no memory.
void verify(MPI_Datatype handle, const void* buffer, std::int64_t count, const std::byte* packed,
            std::int64_t bytes) noexcept;

}  // namespace halocline::interpose
