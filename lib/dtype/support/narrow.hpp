// SPDX-License-Identifier: BSD-3-Clause
// Arithmetic on the user's numbers, checked: from 64-bit byte quantities to MPI's int arguments,
// and sums and products that must stay within 64 bits.
#pragma once

#include <climits>
#include <cstdint>
#include <string>

#include "dtype/support/error.hpp"

namespace halocline {

/// Returns `value` as the int that MPI's interface takes. Throws ConfigError naming `what` if it
/// is beyond `limit` in either direction; callers that can split do so before they get here.
inline int checked_int(std::int64_t value, const char* what, std::int64_t limit = INT_MAX) {
  if (value < -limit || value > limit)
    throw ConfigError(std::string(what) + " of " + std::to_string(value) +
                      " is too large (MPI takes an int here): use at most " +
                      std::to_string(limit));
  return static_cast<int>(value);
}

/// `value` if it is a displacement that all later sums can bear, |value| <= 2^61; else throws
/// ConfigError.
inline std::int64_t checked_bytes(std::int64_t value, bool overflowed) {
  constexpr auto kLimit = std::int64_t{1} << 61;
  if (overflowed || value > kLimit || value < -kLimit)
    throw ConfigError(
        "datatype is too large (a size or displacement beyond 2^61 bytes): use smaller counts or "
        "strides");
  return value;
}

/// a + b and a * b of byte quantities, through checked_bytes().
inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  const bool overflowed = __builtin_add_overflow(a, b, &sum);
  return checked_bytes(sum, overflowed);
}
inline std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  const bool overflowed = __builtin_mul_overflow(a, b, &product);
  return checked_bytes(product, overflowed);
}

}  // namespace halocline
