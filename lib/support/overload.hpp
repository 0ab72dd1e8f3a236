// SPDX-License-Identifier: BSD-3-Clause
// Builds visitors for std::visit.
#pragma once

namespace halocline {

/// Is a visitor for std::visit that is made of lambdas.
template <class... F>
struct Overload : F... {
  using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;

}  // namespace halocline
