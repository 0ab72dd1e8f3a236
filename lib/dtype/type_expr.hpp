// SPDX-License-Identifier: BSD-3-Clause
// An MPI datatype as its user wrote it: the constructors of MPI-3.1 section 4.1 with their
// arguments, as a value. This is what MPI_Type_get_contents returns, what `halocline inspect`
// parses, and what the TypeMap oracle expands. Constructors that papers propose to add are
// expressions, too.
//
// Peers keep the constructor arguments only inside their engine; as a value of its own they can be
// printed, parsed, drawn at random, and expanded by an oracle that shares no code with the engine
// it judges.
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

/// The distribution argument that stands for MPI's choice: blocks as even as possible, or single
/// elements if cyclic.
inline constexpr std::int64_t kDefaultDarg = MPI_DISTRIBUTE_DFLT_DARG;

/// Counts and block lengths are in units of `old`; so are strides and displacements, except in the
/// types whose name begins with H and in Struct, where they are bytes.
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
/// What process `rank` of `size` owns of a global array. The processes form a grid in row-major
/// order, whatever `order` is.
struct Darray {
  std::int64_t size, rank;
  std::vector<std::int64_t> gsizes;
  std::vector<Distribution> distribs;
  std::vector<std::int64_t> dargs, psizes;
  Order order;  ///< of the array's elements
  TypeExprPtr old;
};
struct Resized {
  TypeExprPtr old;
  std::int64_t lb, extent;  ///< bytes
};
struct Dup {
  TypeExprPtr old;
};

/// The constructors that follow are not MPI's: [TR14 section 5], [KT15 section 3.3], defined as in
/// errata C.6. lower() expresses them in MPI's. All numbers are in units of `old`.

/// A vector that ends at a bound: blocks at start, start + stride, ... below it, the last one cut.
/// 0 <= blocklength <= stride, stride >= 1.
struct BoundedVector {
  std::int64_t start, blocklength, stride, bound;
  TypeExprPtr old;
};
/// The positions of BoundedVector(start, blocklength, stride, end), taken modulo `bound` >= 1. One
/// turn ends at start + bound; there may be several.
struct CircularVector {
  std::int64_t start, blocklength, stride, end, bound;
  TypeExprPtr old;
};
/// counts[i] >= 0 elements from i * size on.
struct Bucket {
  std::int64_t size;
  std::vector<std::int64_t> counts;
  TypeExprPtr old;
};
/// Type `index` of the `types` that stretched_vectors() makes: block j, of b[j] elements, at index
/// * b[j] + types * (b[0] + ... + b[j - 1]).
struct StretchedVector {
  std::int64_t types, index;
  std::shared_ptr<const std::vector<std::int64_t>> ends;  ///< b[0] + ... + b[j]; shared by them all
  TypeExprPtr old;
};
/// Block i, of blocklength + i * change >= 0 elements, at i * stride.
struct Triangular {
  std::int64_t count, blocklength, change, stride;
  TypeExprPtr old;
};

/// One constructor call. Immutable; nested types are shared.
struct TypeExpr {
  std::variant<Named, Contiguous, Vector, Hvector, Indexed, Hindexed, IndexedBlock, HindexedBlock,
               Struct, Subarray, Darray, Resized, Dup, BoundedVector, CircularVector, Bucket,
               StretchedVector, Triangular>
      node;
};

/// Wraps a constructor for use as the `old` of another one.
template <class Constructor>
TypeExprPtr type(Constructor constructor) {
  return std::make_shared<const TypeExpr>(TypeExpr{std::move(constructor)});
}

/// The predefined type of that name, as in NamedType or as MPI writes it ("double", "MPI_DOUBLE"),
/// in lower or upper case. Throws ConfigError if there is none.
TypeExprPtr named(std::string_view name);

/// All `types` stretched vectors of blocks of these lengths, none negative, together every element
/// of a buffer of `types` >= 1 times their sum. They share one array. O(types + blocks). Throws
/// ConfigError for lengths that are negative and for sums beyond 2^61.
std::vector<TypeExprPtr> stretched_vectors(std::int64_t types,
                                           const std::vector<std::int64_t>& blocklengths,
                                           const TypeExprPtr& old);

/// The expression of a predefined type; no allocation for those of named_types().
TypeExprPtr named(const NamedType& type);

/// The types that the constructor is applied to, in the order of its arguments: several for a
/// struct, none for a predefined type.
std::vector<TypeExprPtr> types_inside(const TypeExpr& expr);

/// The expression in the notation of parse_type, e.g. "vector(5,4,4,double)".
/// parse_type(to_string(e)) equals e.
std::string to_string(const TypeExpr& expr);

/// The expression as numbers, to compare and to sort by: equal for equal expressions and for no
/// others. nullopt if there are more than `most`. O(numbers); types inside count as often as they
/// are there.
std::optional<std::vector<std::int64_t>> to_numbers(const TypeExpr& expr, std::size_t most);

// clang-format off
/// Parses one type expression: the standard's constructor names in lower case with the arguments in
/// the standard's order, lists in braces, white space free.
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
/// and those that MPI does not have, all numbers in extents of T:
///
///     bounded_vector(start, blocklength, stride, bound, T)
///     circular_vector(start, blocklength, stride, end, bound, T)
///     bucket(size, {counts}, T)
///     stretched_vector(types, index, {blocklengths}, T)
///     triangular(count, blocklength, change, stride, T)
///
/// Throws ConfigError that shows where and what was expected; also for arguments that MPI calls
/// erroneous (negative counts, subarrays outside of their array, blocks that do not cover theirs).
// clang-format on
TypeExprPtr parse_type(std::string_view text);

}  // namespace halocline::dtype
