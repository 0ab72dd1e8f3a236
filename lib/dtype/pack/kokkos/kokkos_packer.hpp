// SPDX-License-Identifier: BSD-3-Clause
// Packs with all threads of a Kokkos host execution space.
#pragma once

#include <Kokkos_Core.hpp>

#include "dtype/pack/packer.hpp"

namespace halocline::dtype {

/// Packs on a Kokkos execution space instance. O(packed bytes).
///
/// The packed stream is cut into equal shares, one per thread, and one kernel copies them all. The
/// calling thread copies less than two shares of `least_share` bytes without a kernel.
///
/// It is instantiated for Kokkos' Serial and OpenMP, whose kernels are done on return. Only fence()
/// fences. It must not outlive Kokkos::finalize().
template <class ExecutionSpace>
class KokkosPacker final : public Packer {
 public:
  /// Is the default of the least share: waking a sleeping thread takes about as long as copying
  /// half of it.
  static constexpr std::int64_t kLeastShare = 1024 * 1024;

  explicit KokkosPacker(const ExecutionSpace& space = ExecutionSpace(),
                        std::int64_t least_share = kLeastShare)
      : space_(space), least_share_(least_share) {}

  void pack(const PackPlan& plan, const void* buffer, std::int64_t count,
            void* packed) const override;
  void unpack(const PackPlan& plan, const void* packed, void* buffer,
              std::int64_t count) const override;
  void pack(const FusedPlan& plan, void* packed) const override;
  void unpack(const FusedPlan& plan, const void* packed) const override;
  void copy(const CopyPlan& plan) const override;
  void fence() const override { space_.fence("halocline::KokkosPacker::fence"); }

 private:
  ExecutionSpace space_;
  std::int64_t least_share_;
};

}  // namespace halocline::dtype
