// SPDX-License-Identifier: BSD-3-Clause
// The interface of all pack back ends.
#pragma once

#include <cstdint>

#include "dtype/pack/copy_plan.hpp"
#include "dtype/pack/fused_plan.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::dtype {

/// Executes pack plans. All operations may return before they are done and never fence; the buffers
/// and plans must stay as they are until fence() has returned.
class Packer {
 public:
  virtual ~Packer() = default;

  /// Copies `count` instances at `buffer` to plan.packed_bytes(count) bytes at `packed`, in type
  /// map order. `buffer` may be MPI_BOTTOM when the type holds absolute addresses. Buffers must not
  /// overlap.
  virtual void pack(const PackPlan& plan, const void* buffer, std::int64_t count,
                    void* packed) const = 0;

  /// Unpacks `count` instances at `buffer` from `packed`; bytes in the gaps of the type are not
  /// written. Where entries overlap, the host packer writes them in the order of the type map, and
  /// the order of the other packers is not defined.
  virtual void unpack(const PackPlan& plan, const void* packed, void* buffer,
                      std::int64_t count) const = 0;

  /// All jobs of a plan, to and from their packed offsets at `packed`.
  virtual void pack(const FusedPlan& plan, void* packed) const = 0;
  virtual void unpack(const FusedPlan& plan, const void* packed) const = 0;

  /// All copies of a plan, each between memories that this packer reaches.
  virtual void copy(const CopyPlan& plan) const = 0;

  /// Makes ready what the first of these calls would otherwise have to, now; may fence.
  virtual void prepare(const PackPlan&, const void* /*buffer*/, std::int64_t /*count*/,
                       const void* /*packed*/) const {}
  virtual void prepare(const FusedPlan&) const {}
  virtual void prepare(const CopyPlan&) const {}

  /// Returns when all earlier operations of this packer are done.
  virtual void fence() const = 0;
};

}  // namespace halocline::dtype
