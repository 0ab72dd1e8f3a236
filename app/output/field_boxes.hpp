// SPDX-License-Identifier: BSD-3-Clause
// Describes the points of one field as datatypes: in the memory of a rank, and in an array of the
// whole domain.
#pragma once

#include "domain.hpp"
#include "dtype/type_expr.hpp"

namespace halocline::app {

/// Returns the type of values of `bytes` bytes: double or float.
dtype::TypeExprPtr value_type(int bytes);

/// Names the array that holds a field, and describes points of that field in it.
struct FieldBox {
  int array;
  dtype::TypeExprPtr type;  ///< counts from the first stored point of the array
};

/// Describes the points of `box`, which this rank owns, in global coordinates.
FieldBox field_box(const Domain& domain, int field, const comm::Box& box);

/// Describes `box` in an array of `whole` points, x fastest, then y.
dtype::TypeExprPtr box_in_array(const comm::Int3& whole, const comm::Box& box, int value_bytes);

}  // namespace halocline::app
