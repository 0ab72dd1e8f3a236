// SPDX-License-Identifier: BSD-3-Clause
// Packing by a Kokkos kernel on any execution space that can reach the buffers.
#pragma once

#include <Kokkos_Core.hpp>

#include "dtype/pack/packer.hpp"

namespace halocline::dtype {

/// Packs on a Kokkos execution space instance: one kernel per call, whose steps copy about 4 KiB
/// each, in words of the widest type to which everything is aligned. Types nested deeper than
/// kMaxKernelLevels loops take a kernel per step of the outer ones. O(packed bytes).
///
/// Instantiated for Kokkos' host execution spaces; buffers must be reachable from `ExecutionSpace`.
/// Kernels are enqueued on the given instance; nothing fences but fence(). Must not outlive
/// Kokkos::finalize().
template <class ExecutionSpace>
class KokkosPacker final : public Packer {
 public:
  /// Loop levels that one kernel handles.
  static constexpr int kMaxKernelLevels = 6;

  explicit KokkosPacker(const ExecutionSpace& space = ExecutionSpace()) : space_(space) {}

  void pack(const PackPlan& plan, const void* buffer, std::int64_t count,
            void* packed) const override;
  void unpack(const PackPlan& plan, const void* packed, void* buffer,
              std::int64_t count) const override;
  void fence() const override { space_.fence("halocline::KokkosPacker::fence"); }

 private:
  ExecutionSpace space_;
};

}  // namespace halocline::dtype
