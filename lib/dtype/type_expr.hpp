// SPDX-License-Identifier: BSD-3-Clause
// Describes an MPI datatype as its user wrote it: the constructors of MPI-3.1 section 4.1 with
// their arguments, as a value. MPI_Type_get_contents returns such values, `halocline inspect`
// parses them, and the TypeMap oracle expands them. Constructors that papers propose to add are
// expressions, too.
//
// Best peer: MPI libraries keep the constructor arguments only inside their engine. As values
// they can be printed, parsed and drawn at random. An oracle that shares no code with the engine
// can expand them.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "dtype/basic_type.hpp"

namespace halocline::dtype {

struct TypeExpr;
using TypeExprPtr = std::shared_ptr<const TypeExpr>;

enum class Order { c, fortran };
enum class Distribution { block, cyclic, none };

/// Is the distribution argument that leaves the choice to MPI: blocks as even as possible, or
/// single elements if cyclic.
inline constexpr std::int64_t kDefaultDarg = MPI_DISTRIBUTE_DFLT_DARG;

/// Describes a predefined type. In all other types, counts and block lengths are in units of `old`.
/// Strides and displacements are in units of `old`, too. They are bytes in Struct and in types
/// whose name begins with H.
struct Named {
  const NamedType* type;
};
struct Contiguous {
  std::int64_t count;
  TypeExprPtr old;
};
struct Vector {
  std::int64_t count, blocklength, stride;
  TypeExprPtr old;
};
struct Hvector {
  std::int64_t count, blocklength, stride;
  TypeExprPtr old;
};
struct Indexed {
  std::vector<std::int64_t> blocklengths, displacements;
  TypeExprPtr old;
};
struct Hindexed {
  std::vector<std::int64_t> blocklengths, displacements;
  TypeExprPtr old;
};
struct IndexedBlock {
  std::int64_t blocklength;
  std::vector<std::int64_t> displacements;
  TypeExprPtr old;
};
struct HindexedBlock {
  std::int64_t blocklength;
  std::vector<std::int64_t> displacements;
  TypeExprPtr old;
};
struct Struct {
  std::vector<std::int64_t> blocklengths, displacements;
  std::vector<TypeExprPtr> old;
};
struct Subarray {
  Order order;
  std::vector<std::int64_t> sizes, subsizes, starts;  ///< in MPI's dimension order, see `order`
  TypeExprPtr old;
};
/// Describes the elements of a global array that process `rank` of `size` owns. The processes form
/// a grid in row-major order, whatever `order` is.
struct Darray {
  std::int64_t size, rank;
  std::vector<std::int64_t> gsizes;
  std::vector<Distribution> distribs;
  std::vector<std::int64_t> dargs, psizes;
  Order order;  ///< order of the array's elements
  TypeExprPtr old;
};
struct Resized {
  TypeExprPtr old;
  std::int64_t lb, extent;  ///< bytes
};
struct Dup {
  TypeExprPtr old;
};

// The constructors that follow are not MPI's: [TR14 section 5], [KT15 section 3.3], defined as in
// errata C.6. lower() expresses them by MPI's constructors. All numbers are in units of `old`.

/// Describes a vector that ends at a bound: blocks at start, start + stride, ... below it, the last
/// one cut. 0 <= blocklength <= stride, stride >= 1.
struct BoundedVector {
  std::int64_t start, blocklength, stride, bound;
  TypeExprPtr old;
};
/// Describes the positions of BoundedVector(start, blocklength, stride, end), taken modulo `bound`
/// >= 1. One turn ends at start + bound; there may be several.
struct CircularVector {
  std::int64_t start, blocklength, stride, end, bound;
  TypeExprPtr old;
};
/// Describes buckets: counts[i] >= 0 elements from position i * size on, in units of `old`.
struct Bucket {
  std::int64_t size;
  std::vector<std::int64_t> counts;
  TypeExprPtr old;
};
/// Describes stretched vector `index` of the `types` that stretched_vectors() makes. Block j has
/// b[j] elements. Its position is index * b[j] + types * (b[0] + ... + b[j - 1]), in units of
/// `old`.
struct StretchedVector {
  std::int64_t types, index;
  std::shared_ptr<const std::vector<std::int64_t>> ends;  ///< b[0] + ... + b[j]; one array for all
  TypeExprPtr old;
};
/// Describes blocks whose lengths change: block i has blocklength + i * change >= 0 elements, at
/// position i * stride in units of `old`.
struct Triangular {
  std::int64_t count, blocklength, change, stride;
  TypeExprPtr old;
};

/// Holds one constructor call. Immutable; nested types are shared.
struct TypeExpr {
  std::variant<Named, Contiguous, Vector, Hvector, Indexed, Hindexed, IndexedBlock, HindexedBlock,
               Struct, Subarray, Darray, Resized, Dup, BoundedVector, CircularVector, Bucket,
               StretchedVector, Triangular>
      node;
};

/// Wraps a constructor for use as the `old` of another constructor.
template <class Constructor>
TypeExprPtr type(Constructor constructor) {
  return std::make_shared<const TypeExpr>(TypeExpr{std::move(constructor)});
}

/// Returns the predefined type of that name, as in NamedType or as MPI writes it ("double",
/// "MPI_DOUBLE"), in lower or upper case. Throws ConfigError if there is none.
TypeExprPtr named(std::string_view name);

/// Returns all `types` >= 1 stretched vectors of blocks of these lengths, none negative. Together
/// they have every element of a buffer of `types` times the sum of the lengths. They share one
/// array. O(types + blocks). Throws ConfigError for wrong arguments and for sums beyond 2^61.
std::vector<TypeExprPtr> stretched_vectors(std::int64_t types,
                                           const std::vector<std::int64_t>& blocklengths,
                                           const TypeExprPtr& old);

/// Returns the expression of a predefined type. Does not allocate for types of named_types().
TypeExprPtr named(const NamedType& type);

/// Returns the types that the constructor is applied to, in the order of its arguments. A struct
/// has several; a predefined type has none.
std::vector<TypeExprPtr> types_inside(const TypeExpr& expr);

/// Returns the expression in the notation of parse_type(), such as "vector(5,4,4,double)".
/// parse_type(to_string(e)) equals e.
std::string to_string(const TypeExpr& expr);

/// Returns the expression as numbers, to compare and to sort by. Two expressions have equal numbers
/// if and only if they are equal. Returns nullopt if there are more than `most` numbers.
/// O(numbers). A type inside counts once for each place where it stands.
std::optional<std::vector<std::int64_t>> to_numbers(const TypeExpr& expr, std::size_t most);

// clang-format off
/// Parses one type expression: the standard's constructor names in lower case, with the arguments
/// in the standard's order. Lists are in braces; white space is free.
///
///     NAME                                              predefined: double, int, byte, double_int,
///                                                       ...; also as MPI writes it: MPI_DOUBLE
///     f90_real(precision, range), f90_complex(precision, range), f90_integer(range)
///                                                       predefined, too; numbers or undefined
///     contiguous(count, T)
///     vector(count, blocklength, stride, T)             stride in extents of T
///     hvector(count, blocklength, stride, T)            stride in bytes
///     indexed({blocklengths}, {displacements}, T)       displacements in extents of T
///     hindexed({blocklengths}, {displacements}, T)      displacements in bytes
///     indexed_block(blocklength, {displacements}, T)
///     hindexed_block(blocklength, {displacements}, T)
///     struct({blocklengths}, {displacements}, {T, ...})
///     subarray(C|F, {sizes}, {subsizes}, {starts}, T)
///     darray(size, rank, {gsizes}, {block|cyclic|none, ...}, {dargs}, {psizes}, C|F, T)
///                                                       a darg is a number or default
///     resized(T, lb, extent)
///     dup(T)
///
/// These constructors are not MPI's; all their numbers are in extents of T:
///
///     bounded_vector(start, blocklength, stride, bound, T)
///     circular_vector(start, blocklength, stride, end, bound, T)
///     bucket(size, {counts}, T)
///     stretched_vector(types, index, {blocklengths}, T)
///     triangular(count, blocklength, change, stride, T)
///
/// Throws ConfigError that shows the place and the expected text. It also throws for arguments that
/// MPI calls erroneous: negative counts, subarrays outside of their array, blocks that do not cover
/// their array.
// clang-format on
TypeExprPtr parse_type(std::string_view text);

}  // namespace halocline::dtype
