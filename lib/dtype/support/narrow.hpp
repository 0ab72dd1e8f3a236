// SPDX-License-Identifier: BSD-3-Clause
// From 64-bit byte quantities to MPI's int arguments, checked.
#pragma once

#include <climits>
#include <cstdint>
#include <string>

#include "dtype/support/error.hpp"

namespace halocline {

/// Returns `value` as the int that MPI's interface takes. Throws ConfigError naming `what` if it
/// does not fit; callers that can split do so before they get here.
inline int checked_int(std::int64_t value, const char* what) {
  if (value < INT_MIN || value > INT_MAX)
    throw ConfigError(
        std::string(what) + " of " + std::to_string(value) +
        " is too large (MPI takes an int here): use a smaller value or a larger element type");
  return static_cast<int>(value);
}

}  // namespace halocline
