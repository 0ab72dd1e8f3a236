// SPDX-License-Identifier: BSD-3-Clause
// Builds visitors for std::visit, and asks for several types at once.
#pragma once

#include <type_traits>

namespace halocline {

/// Is a visitor for std::visit that is made of lambdas.
template <class... F>
struct Overload : F... {
  using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;

/// Tells if T is one of `Others`.
template <class T, class... Others>
inline constexpr bool kIsOneOf = (std::is_same_v<T, Others> || ...);

}  // namespace halocline
