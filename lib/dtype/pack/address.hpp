// SPDX-License-Identifier: BSD-3-Clause
// Names what all pack back ends share: addresses, and the direction of a copy.
#pragma once

#include <cstdint>

namespace halocline::dtype::detail {

// Addresses are integers: with MPI_BOTTOM there is no array to stay inside of.
using Address = std::uintptr_t;

enum class CopyDirection { pack, unpack };

}  // namespace halocline::dtype::detail
