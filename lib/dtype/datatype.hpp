// SPDX-License-Identifier: BSD-3-Clause
// The border to MPI: handles that free themselves, expression -> MPI_Datatype, MPI_Datatype ->
// expression.
#pragma once

#include <mpi.h>

#include <utility>

#include "dtype/support/error.hpp"
#include "dtype/type_expr.hpp"

namespace halocline::dtype {

/// Owner of an MPI_Datatype. Move-only; frees the handle unless it is null or predefined, or MPI is
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

  /// The handle, still owned by this object.
  MPI_Datatype get() const noexcept { return handle_; }

 private:
  MPI_Datatype handle_ = MPI_DATATYPE_NULL;
};

/// The committed MPI datatype of an expression, made with the standard's constructors; since MPI 4
/// with those for large counts where a number exceeds an int. Local. Throws ConfigError where an
/// argument does not fit what this MPI takes, MpiError where MPI refuses.
Datatype make_datatype(const TypeExpr& expr);

/// Whether `handle` is one of MPI's own types. Local. Throws MpiError.
bool is_predefined(MPI_Datatype handle);

/// Returns the constructor calls behind `handle`, with the bounds that this MPI gives each of its
/// types.
///
/// Reads through MPI_Type_get_envelope and MPI_Type_get_contents, since MPI 4 through their
/// variants for large counts, and frees every handle that MPI hands out on the way. Reads every
/// combiner of MPI-3.1. Where MPI's lb or extent of a type, outermost or inside, differs from the
/// standard's rule, the expression has a Resized around that type: programs lay out their arrays by
/// MPI_Type_get_extent. Local; O(number of constructor arguments).
///
/// \return UnsupportedDatatype for predefined types that Halocline does not know, such as the
///   removed MPI_LB, for combiners of later standards, and for types whose size or true bounds say
///   that this MPI places their data elsewhere than the constructors do.
/// \throws ConfigError for sizes or displacements beyond 2^61 bytes.
Result<TypeExprPtr> decode(MPI_Datatype handle);

/// decode(), as a value whose lists may be moved elsewhere.
Result<TypeExpr> decode_value(MPI_Datatype handle);

}  // namespace halocline::dtype
