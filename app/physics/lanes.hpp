// SPDX-License-Identifier: BSD-3-Clause
// Computes several points of a row at once: arithmetic that works on a number and on a vector of
// numbers.
//
// The compiler does not vectorise a loop of a thousand operations. With vectors as values, the same
// source serves hosts (Lanes) and devices (one number). Each lane takes the operations that a
// number takes, so the bits are the same.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace halocline::app {

/// Is as many numbers of type T as one register holds: 32 bytes with AVX, else 16. nvcc knows no
/// such vectors: there it is one number.
#if defined(__CUDACC__)
template <class T>
using Lanes = T;
#elif defined(__AVX__)
template <class T>
using Lanes [[gnu::vector_size(32)]] = T;
#else
template <class T>
using Lanes [[gnu::vector_size(16)]] = T;
#endif

// Hosts of x86 whose registers may hold 64 bytes. HALOCLINE_WIDE_LANES stands before a function
// that computes WideLanes. All that it calls must be inlined into it.
#if defined(__AVX__) && !defined(__CUDACC__)
#define HALOCLINE_WIDE_LANES [[gnu::target("avx512f")]]
#pragma GCC diagnostic ignored "-Wpsabi"  // inlined functions have no ABI
/// Is as many numbers of type T as one register of AVX-512 holds.
template <class T>
using WideLanes [[gnu::vector_size(64)]] = T;

/// Tells if this processor computes WideLanes.
inline bool has_wide_lanes() {
  static const bool has = __builtin_cpu_supports("avx512f") != 0;
  return has;
}
#endif

namespace detail {

template <class V>
struct ScalarOf {
  using Type = std::remove_cvref_t<decltype(std::declval<V>()[0])>;
};
template <>
struct ScalarOf<double> {
  using Type = double;
};
template <>
struct ScalarOf<float> {
  using Type = float;
};

// Is the type of the integers that hold the bits of V.
template <class V>
struct BitsOf {
  using Type [[gnu::vector_size(sizeof(V))]] =
      std::conditional_t<sizeof(typename ScalarOf<V>::Type) == 8, std::uint64_t, std::uint32_t>;
};
template <>
struct BitsOf<double> {
  using Type = std::uint64_t;
};
template <>
struct BitsOf<float> {
  using Type = std::uint32_t;
};

// ln 2 in two parts: the product of kLn2High and an exponent is exact.
template <class T>
struct ExpConstants;
template <>
struct ExpConstants<double> {
  static constexpr double kLimit = 708, kLog2E = 1.4426950408889634, kShift = 0x1.8p52;
  static constexpr double kLn2High = 6.93147180369123816490e-01;
  static constexpr double kLn2Low = 1.90821492927058770002e-10;
  static constexpr int kMantissa = 52, kDegree = 13;
};
template <>
struct ExpConstants<float> {
  static constexpr float kLimit = 87, kLog2E = 1.44269504F, kShift = 0x1.8p23F;
  static constexpr float kLn2High = 6.9313812256e-01F, kLn2Low = 9.0580006145e-06F;
  static constexpr int kMantissa = 23, kDegree = 7;
};

KOKKOS_INLINE_FUNCTION constexpr double factorial(int n) {
  return n < 2 ? 1 : n * factorial(n - 1);
}

// Returns the Taylor polynomial of e^r of degree kDegree, by Horner's rule.
template <int kTerm, int kDegree, class V>
KOKKOS_FORCEINLINE_FUNCTION V exp_series(const V& r) {
  constexpr auto kCoefficient = static_cast<typename ScalarOf<V>::Type>(1 / factorial(kTerm));
  if constexpr (kTerm == kDegree)
    return V{} + kCoefficient;
  else
    return exp_series<kTerm + 1, kDegree>(r) * r + kCoefficient;
}

}  // namespace detail

/// Is the type of one number of V, which is a number or Lanes.
template <class V>
using ScalarOf = typename detail::ScalarOf<V>::Type;

/// Is the number of points in V.
template <class V>
inline constexpr int kLanes = sizeof(V) / sizeof(ScalarOf<V>);

/// Returns the numbers that begin at `from`, which needs no alignment.
template <class V>
KOKKOS_FORCEINLINE_FUNCTION V load(const ScalarOf<V>* from) {
  V out;
  __builtin_memcpy(&out, from, sizeof out);
  return out;
}

/// Writes the numbers of `value` from `to` on, which needs no alignment.
template <class V>
KOKKOS_FORCEINLINE_FUNCTION void store(const V& value, ScalarOf<V>* to) {
  __builtin_memcpy(to, &value, sizeof value);
}

/// Returns e^x to 2 units in the last place. Values beyond +-708 (float: 87) count as +-708. NaN
/// gives NaN. All lanes, hosts and devices give the same bits.
template <class V>
KOKKOS_FORCEINLINE_FUNCTION V exponential(V x) {
  using T = ScalarOf<V>;
  using C = detail::ExpConstants<T>;
  using Bits = typename detail::BitsOf<V>::Type;
  const V low = V{} - C::kLimit, high = V{} + C::kLimit;
  const V given = x;
  x = x < low ? low : x;
  x = x > high ? high : x;
  // x = n ln 2 + r with |r| <= ln(2) / 2. The addition of kShift rounds, and leaves n in the last
  // bits of the sum.
  const V shifted = x * C::kLog2E + C::kShift;
  const V n = shifted - C::kShift;
  const V r = (x - n * C::kLn2High) - n * C::kLn2Low;
  const V p = detail::exp_series<0, C::kDegree>(r);
  const V out = __builtin_bit_cast(
      V, __builtin_bit_cast(Bits, p) + (__builtin_bit_cast(Bits, shifted) << C::kMantissa));
  return given == given ? out : given;
}

}  // namespace halocline::app
