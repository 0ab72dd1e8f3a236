// SPDX-License-Identifier: BSD-3-Clause
// Checks arithmetic on the user's numbers: conversions to MPI's int arguments, and sums and
// products of bytes that must stay within 2^61.
#pragma once

#include <climits>
#include <cstdint>
#include <string>

#include "support/error.hpp"

namespace halocline {

/// Returns `value` as the int that MPI's interface takes. Callers that can split a number do so
/// before. Throws ConfigError that names `what` if |value| > `limit`.
inline int checked_int(std::int64_t value, const char* what, std::int64_t limit = INT_MAX) {
  if (value < -limit || value > limit)
    throw ConfigError(std::string(what) + " of " + std::to_string(value) +
                      " is too large (MPI takes an int here): use at most " +
                      std::to_string(limit));
  return static_cast<int>(value);
}

/// Returns `value` if |value| <= 2^61: later sums of such displacements cannot overflow. Throws
/// ConfigError if |value| is larger, or if `overflowed` says that computing `value` overflowed.
inline std::int64_t checked_bytes(std::int64_t value, bool overflowed) {
  constexpr auto kLimit = std::int64_t{1} << 61;
  if (overflowed || value > kLimit || value < -kLimit)
    throw ConfigError(
        "datatype is too large (a size or displacement beyond 2^61 bytes): use smaller counts or "
        "strides");
  return value;
}

/// Returns a + b of numbers of bytes. Throws ConfigError if the sum is beyond 2^61.
inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  const bool overflowed = __builtin_add_overflow(a, b, &sum);
  return checked_bytes(sum, overflowed);
}
/// Returns a * b of numbers of bytes. Throws ConfigError if the product is beyond 2^61.
inline std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  const bool overflowed = __builtin_mul_overflow(a, b, &product);
  return checked_bytes(product, overflowed);
}

}  // namespace halocline
