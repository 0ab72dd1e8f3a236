// SPDX-License-Identifier: BSD-3-Clause
// Packs with the kernels of devices on any Kokkos execution space.
#pragma once

#include <Kokkos_Core.hpp>

#include "dtype/pack/device/table_packer.hpp"

namespace halocline::dtype {

/// Packs on a Kokkos execution space instance by one kernel for all jobs. O(packed bytes).
///
/// Every word is found from its number. It serves spaces without a CudaPacker, but also works
/// beside one. Buffers are in memory that the space can access. Only fence() and the first use of a
/// plan fence.
///
/// It is instantiated for the spaces that Kokkos is built with; on the host, KokkosPacker is
/// faster. A plan must be used with one space. Neither the packer nor plans used with it may
/// outlive Kokkos::finalize().
template <class ExecutionSpace>
class KokkosDevicePacker final : public TablePacker {
 public:
  explicit KokkosDevicePacker(const ExecutionSpace& space = ExecutionSpace()) : space_(space) {}
  void fence() const override { space_.fence("halocline::KokkosDevicePacker::fence"); }

 private:
  using MemorySpace = typename ExecutionSpace::memory_space;

  Backend backend() const override { return Backend::kokkos; }
  std::shared_ptr<const void> upload(std::span<const std::byte> bytes) const override;
  std::size_t argument_bytes(std::size_t bytes) const override;
  void launch(const Launch& launch) const override;

  ExecutionSpace space_;
};

}  // namespace halocline::dtype
