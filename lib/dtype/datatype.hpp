// SPDX-License-Identifier: BSD-3-Clause
// Translates between MPI_Datatype handles and type expressions. Defines a handle that frees itself.
// A plan needs no expression: make_plan(handle) makes the tree while MPI is asked.
#pragma once

#include <mpi.h>

#include <utility>

#include "dtype/type_expr.hpp"
#include "support/error.hpp"

namespace halocline::dtype {

/// Owns an MPI_Datatype. Move-only. Frees the handle unless it is null or predefined, or MPI is
/// finalized.
class Datatype {
 public:
  Datatype() = default;
  /// Takes ownership of `handle`.
  explicit Datatype(MPI_Datatype handle) noexcept : handle_(handle) {}
  Datatype(Datatype&& other) noexcept : handle_(std::exchange(other.handle_, MPI_DATATYPE_NULL)) {}
  Datatype& operator=(Datatype&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Datatype();

  /// Returns the handle. This object still owns it.
  MPI_Datatype get() const noexcept { return handle_; }

 private:
  MPI_Datatype handle_ = MPI_DATATYPE_NULL;
};

/// Returns the committed MPI datatype of an expression, made with the standard's constructors.
/// Since MPI 4, uses the constructors for large counts if a number exceeds an int. Local.
///
/// \throws ConfigError if an argument does not fit the numbers that this MPI takes.
/// \throws MpiError if MPI refuses a call.
Datatype make_datatype(const TypeExpr& expr);

/// Tells if `handle` is one of MPI's own types. Local. Throws MpiError if MPI refuses the handle.
bool is_predefined(MPI_Datatype handle);

/// Returns the constructor calls behind `handle`, with the bounds that this MPI gives to each of
/// its types.
///
/// Reads through MPI_Type_get_envelope and MPI_Type_get_contents, since MPI 4 through their
/// variants for large counts. Frees every handle that MPI hands out on the way. Reads every
/// combiner of MPI-3.1. MPI's lb or extent of a type, outermost or inside, may differ from the
/// standard's rule. The expression then has a Resized around that type, since programs lay out
/// their arrays by MPI_Type_get_extent. Local; O(number of constructor arguments).
///
/// \return UnsupportedDatatype for predefined types that Halocline does not know, such as the
///   removed MPI_LB, and for combiners of later standards. Also for types nested deeper than 1000
///   and for more than 2^16 types inside. Also if size or true bounds say that this MPI places the
///   data elsewhere than the constructors do.
/// \throws ConfigError for sizes or displacements beyond 2^61 bytes.
Result<TypeExprPtr> decode(MPI_Datatype handle);

}  // namespace halocline::dtype
