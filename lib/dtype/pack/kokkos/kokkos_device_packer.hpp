// SPDX-License-Identifier: BSD-3-Clause
// Packing by the kernels of devices on any Kokkos execution space.
#pragma once

#include <Kokkos_Core.hpp>

#include "dtype/pack/device/table_packer.hpp"

namespace halocline::dtype {

/// Packs on a Kokkos execution space instance that has no CudaPacker of its own, or beside it: one
/// kernel for all jobs, every word found from its number. For memory that the space can access.
/// Nothing fences but fence() and the first use of a plan. Instantiated for the spaces that Kokkos
/// is built with; on the host KokkosPacker is the faster one. A plan must be used with one space.
/// Must not outlive Kokkos::finalize(), nor may plans that it was used with. O(packed bytes).
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
