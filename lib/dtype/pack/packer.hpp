// SPDX-License-Identifier: BSD-3-Clause
// Declares the interface of all pack back ends.
#pragma once

#include <cstdint>

#include "dtype/pack/copy_plan.hpp"
#include "dtype/pack/fused_plan.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::dtype {

/// Executes pack plans.
///
/// All operations may return before they are done, and never fence. Buffers and plans must stay as
/// they are until fence() has returned.
class Packer {
 public:
  virtual ~Packer() = default;

  /// Packs `count` instances at `buffer` into `packed`, plan.packed_bytes(count) bytes in type map
  /// order. `buffer` may be MPI_BOTTOM when the type holds absolute addresses. Buffers must not
  /// overlap.
  virtual void pack(const PackPlan& plan, const void* buffer, std::int64_t count,
                    void* packed) const = 0;

  /// Unpacks `count` instances at `buffer` from `packed`. Bytes in the gaps of the type are not
  /// written. Where entries overlap, the host packer writes in the order of the type map. The order
  /// of all other packers is not defined.
  virtual void unpack(const PackPlan& plan, const void* packed, void* buffer,
                      std::int64_t count) const = 0;

  /// Packs all jobs of a plan to their packed offsets at `packed`.
  virtual void pack(const FusedPlan& plan, void* packed) const = 0;
  /// Unpacks all jobs of a plan from their packed offsets at `packed`.
  virtual void unpack(const FusedPlan& plan, const void* packed) const = 0;

  /// Executes all copies of a plan. This packer must reach the memories of each copy.
  virtual void copy(const CopyPlan& plan) const = 0;

  /// Prepares now what the first pack() or unpack() with these arguments would prepare. May fence.
  virtual void prepare(const PackPlan&, const void* /*buffer*/, std::int64_t /*count*/,
                       const void* /*packed*/) const {}
  /// Prepares now what the first pack() or unpack() of this plan would prepare. May fence.
  virtual void prepare(const FusedPlan&) const {}
  /// Prepares now what the first copy() of this plan would prepare. May fence.
  virtual void prepare(const CopyPlan&) const {}

  /// Returns when all earlier operations of this packer are done.
  virtual void fence() const = 0;
};

}  // namespace halocline::dtype
