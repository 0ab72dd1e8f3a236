// SPDX-License-Identifier: BSD-3-Clause
// Makes forms, nests and plans from the text of a type.
#pragma once

#include <string_view>

#include "dtype/canonical/dataloop.hpp"
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

/// Returns the loop nest of a type that is strided as a whole. Throws std::bad_optional_access for
/// any other type.
inline LoopNest nest_of(std::string_view text) {
  return form_of(text).nest().value();
}

inline PackPlan plan_of(std::string_view text) {
  return PackPlan(form_of(text));
}

}  // namespace halocline::dtype::test
