// SPDX-License-Identifier: BSD-3-Clause
// From the text of a type to its nest, for tests whose types are all strided.
#pragma once

#include <string_view>
#include <variant>

#include "dtype/loop_nest.hpp"
#include "dtype/type_expr.hpp"
#include "dtype/type_tree.hpp"

namespace halocline::dtype::test {

inline LoopNest nest_of(const TypeExpr& expr) {
  return canonicalize(translate(expr));
}
inline LoopNest nest_of(std::string_view text) {
  return nest_of(*parse_type(text));
}

}  // namespace halocline::dtype::test
