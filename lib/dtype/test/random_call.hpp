// SPDX-License-Identifier: BSD-3-Clause
// Draws random datatypes, and finds properties of an expression: the types inside, the strides,
// simpler variants.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "dtype/type_expr.hpp"
#include "dtype/type_tree.hpp"

namespace halocline::dtype::test {

/// Describes one call of a packer: `count` instances of `expr`. Buffers begin `offset` bytes behind
/// an aligned address.
struct Call {
  TypeExprPtr expr;
  std::int64_t count = 1;
  std::int64_t memory_offset = 0;
  std::int64_t packed_offset = 0;
};

/// Draws calls over nestings of all constructors. A seed gives the same calls on every platform
/// with the same predefined types.
class CallGenerator {
 public:
  /// Limits the bytes that a call spans.
  static constexpr std::int64_t kMaxSpan = 1 << 20;

  explicit CallGenerator(std::uint64_t seed) : engine_(seed) {}

  /// Draws the next call: up to 4 nested constructors and at most 2 KiB of data, or 64 KiB in one
  /// call of 50. The span is at most 16 times the data.
  Call next();

 private:
  struct Blocks {
    std::vector<std::int64_t> lengths, displacements;
  };
  struct Sized {
    TypeExprPtr expr;
    TypeBounds bounds;
  };

  Sized draw(int depth, std::int64_t max_bytes);
  TypeExprPtr wrap(const Sized& old, int depth, std::int64_t max_bytes);
  TypeExprPtr draw_named();
  TypeExprPtr draw_subarray(const TypeExprPtr& old);
  TypeExprPtr draw_darray(const TypeExprPtr& old);
  TypeExprPtr draw_further(const TypeExprPtr& old, bool large);
  TypeExprPtr draw_resized(const Sized& old);
  TypeExprPtr draw_struct(const Sized& old, int depth, std::int64_t max_bytes);
  Blocks draw_blocks(bool large, bool of_one_length);
  std::vector<std::int64_t> in_bytes(std::vector<std::int64_t> displacements, std::int64_t extent);
  std::int64_t draw_count(bool large);
  std::int64_t draw_stride(std::int64_t fold);
  std::int64_t between(std::int64_t first, std::int64_t last);
  bool one_in(std::int64_t n) { return between(1, n) == 1; }

  std::mt19937_64 engine_;
};

/// Returns `expr` with lower() in place of every constructor that MPI does not have.
TypeExprPtr lowered(const TypeExprPtr& expr);

/// Tells whether this MPI can pack and send structs with a member that has no data: MPICH, and
/// Intel MPI which is made of it, may divide by zero.
#if defined(MPICH_VERSION) || defined(I_MPI_VERSION)
inline constexpr bool kMembersMayBeEmpty = false;
#else
inline constexpr bool kMembersMayBeEmpty = true;
#endif

/// Returns `expr` with a `resized` around every type whose lb or extent MPI and the type map give
/// differently. Programs lay out their arrays by MPI_Type_get_extent. Shares no code with decode(),
/// which it judges. Returns nullptr if MPI and the type map give different true bounds to a type
/// with data. `expr` has constructors of MPI alone.
TypeExprPtr with_mpi_bounds(const TypeExprPtr& expr);

/// Returns `expr` and all types inside, from the outside inwards, each expression once.
std::vector<TypeExprPtr> nesting(const TypeExprPtr& expr);

/// Tells if a loop of the call, as its user wrote it, has more than one step and a stride that
/// satisfies `predicate`. The extent is the stride between instances. Differences of neighbours in
/// an index list or a struct are strides, too.
bool any_stride(const Call& call, const std::function<bool(std::int64_t)>& predicate);

/// Returns the smallest call found from `call` for which `still_fails` holds. Takes types and
/// blocks out and makes numbers smaller, one step at a time.
Call shrink(Call call, const std::function<bool(const Call&)>& still_fails);

}  // namespace halocline::dtype::test
