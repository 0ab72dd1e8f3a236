// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace halocline {

/// A visitor for std::visit made of lambdas.
template <class... F>
struct Overload : F... {
  using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;

}  // namespace halocline
