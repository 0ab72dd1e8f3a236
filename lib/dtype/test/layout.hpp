// SPDX-License-Identifier: BSD-3-Clause
// From the text of a type to what the engine makes of it.
#pragma once

#include <string_view>

#include "dtype/dataloop.hpp"
#include "dtype/pack/pack_plan.hpp"
#include "dtype/type_expr.hpp"
#include "dtype/type_tree.hpp"

namespace halocline::dtype::test {

inline CanonicalForm form_of(const TypeExpr& expr) {
  return canonicalize(translate(expr));
}
inline CanonicalForm form_of(std::string_view text) {
  return form_of(*parse_type(text));
}

/// For types that are strided as a whole; throws std::bad_optional_access for others.
inline LoopNest nest_of(std::string_view text) {
  return form_of(text).nest().value();
}

inline PackPlan plan_of(std::string_view text) {
  return PackPlan(form_of(text));
}

}  // namespace halocline::dtype::test
