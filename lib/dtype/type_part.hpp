// SPDX-License-Identifier: BSD-3-Clause
// Translates one constructor: makes its bounds and its tree from those of the types inside it. Not
// for users of the library.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "dtype/type_tree.hpp"
#include "support/narrow.hpp"

namespace halocline::dtype::detail {

/// Holds the size and bounds of a datatype, in bytes, with the numbers that combine them further.
/// Explicit bounds are those set by resized, subarray or darray, or by such a type inside. The
/// alignment pads a natural upper bound.
struct Shape {
  std::int64_t size = 0;
  std::int64_t true_lb = 0, true_ub = 0;  // meaningful if has_data
  std::int64_t alignment = 1;
  bool has_data = false;
  bool explicit_lb = false, explicit_ub = false;
  std::int64_t explicit_lb_value = 0, explicit_ub_value = 0;

  std::int64_t lb() const { return explicit_lb ? explicit_lb_value : has_data ? true_lb : 0; }
  std::int64_t ub() const {
    if (explicit_ub) return explicit_ub_value;
    if (!has_data) return lb();
    return true_ub + (-(true_ub - lb()) & (alignment - 1));  // alignment is a power of two
  }
  std::int64_t extent() const { return ub() - lb(); }

  TypeBounds bounds() const {
    return {.size = size,
            .lb = lb(),
            .extent = extent(),
            .true_lb = has_data ? true_lb : 0,
            .true_extent = has_data ? true_ub - true_lb : 0};
  }

  /// Sets both bounds, as MPI_Type_create_resized does. Throws ConfigError beyond 2^61 bytes.
  void resize(std::int64_t new_lb, std::int64_t new_extent) {
    explicit_lb = explicit_ub = true;
    explicit_lb_value = checked_bytes(new_lb, false);
    explicit_ub_value = checked_add(new_lb, new_extent);
  }

  /// Adds the data and bounds of `other`.
  void unite(const Shape& other) {
    size = checked_add(size, other.size);
    if (other.has_data) {
      true_lb = has_data ? std::min(true_lb, other.true_lb) : other.true_lb;
      true_ub = has_data ? std::max(true_ub, other.true_ub) : other.true_ub;
      alignment = std::max(alignment, other.alignment);
      has_data = true;
    }
    if (other.explicit_lb) {
      explicit_lb_value = explicit_lb ? std::min(explicit_lb_value, other.explicit_lb_value)
                                      : other.explicit_lb_value;
      explicit_lb = true;
    }
    if (other.explicit_ub) {
      explicit_ub_value = explicit_ub ? std::max(explicit_ub_value, other.explicit_ub_value)
                                      : other.explicit_ub_value;
      explicit_ub = true;
    }
  }

  /// Becomes `count` copies, of which `least` and `greatest` are the extreme displacements in
  /// bytes. In place, since a Shape is large.
  void copy(std::int64_t count, std::int64_t least, std::int64_t greatest) {
    if (count == 0) {
      *this = {};
      return;
    }
    size = checked_multiply(count, size);
    true_lb = checked_add(true_lb, least);
    true_ub = checked_add(true_ub, greatest);
    explicit_lb_value = checked_add(explicit_lb_value, least);
    explicit_ub_value = checked_add(explicit_ub_value, greatest);
  }

  void move_by(std::int64_t displacement) { copy(1, displacement, displacement); }

  Shape at(std::int64_t displacement) const {
    Shape out = *this;
    out.move_by(displacement);
    return out;
  }

  /// Becomes `count` copies, `stride` bytes apart.
  void repeat(std::int64_t count, std::int64_t stride) {
    const auto last = count == 0 ? 0 : checked_multiply(count - 1, stride);
    copy(count, std::min<std::int64_t>(last, 0), std::max<std::int64_t>(last, 0));
  }
};

/// Holds both results of a translation: the shape, and the tree if the caller asked for it.
struct Part {
  Shape shape;
  TreeNodePtr tree;
};

/// Maps types to their parts, where those are known already.
using KnownParts = std::unordered_map<const TypeExpr*, Part>;

/// Translates one expression. Takes the parts of types inside from `known` if they are there,
/// instead of translating those types again. Makes a tree only if `with_tree`. Moves the lists of
/// `expr` into the tree. Throws ConfigError for sizes or displacements beyond 2^61 bytes.
Part part_of(TypeExpr expr, bool with_tree, const KnownParts& known);

/// Decodes a handle like decode(), and translates it on the way. Local.
Result<Part> read_part(MPI_Datatype handle);

}  // namespace halocline::dtype::detail
