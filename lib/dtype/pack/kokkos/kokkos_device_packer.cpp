// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/kokkos/kokkos_device_packer.hpp"

#include <cstring>

#include "dtype/pack/device/kernels.hpp"

namespace halocline::dtype {

namespace {

// Bytes of a table that a functor carries. Launches are light-weight: CUDA's back end would copy
// larger functors to constant memory and wait.
constexpr std::size_t kArgumentBytes = 2048;

// Executes one thread of a launch, by its number.
template <class Kernel, class Table>
struct Thread {
  Table argument;
  device::Call call;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    Kernel()(argument.table, call, static_cast<std::uint64_t>(i) / device::kBlockThreads,
             static_cast<std::uint32_t>(i % device::kBlockThreads));
  }
};

}  // namespace

template <class ExecutionSpace>
std::shared_ptr<const void> KokkosDevicePacker<ExecutionSpace>::upload(
    std::span<const std::byte> bytes) const {
  using View = Kokkos::View<std::byte*, MemorySpace>;
  using HostView =
      Kokkos::View<const std::byte*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  const auto copy = std::make_shared<View>(
      Kokkos::view_alloc(Kokkos::WithoutInitializing, "halocline::KokkosDevicePacker::table"),
      bytes.size());
  Kokkos::deep_copy(*copy, HostView(bytes.data(), bytes.size()));
  return {copy, copy->data()};
}

template <class ExecutionSpace>
std::size_t KokkosDevicePacker<ExecutionSpace>::argument_bytes(std::size_t bytes) const {
  return bytes <= kArgumentBytes ? kArgumentBytes : 0;
}

template <class ExecutionSpace>
void KokkosDevicePacker<ExecutionSpace>::launch(const Launch& launch) const {
  const auto run = [&](auto kernel, const auto& table) {
    const auto threads = static_cast<std::int64_t>(launch.blocks * device::kBlockThreads);
    using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
    Kokkos::parallel_for(
        launch.direction == device::Direction::pack ? "halocline::KokkosDevicePacker::pack"
                                                    : "halocline::KokkosDevicePacker::unpack",
        Kokkos::Experimental::require(Policy(space_, 0, threads),
                                      Kokkos::Experimental::WorkItemProperty::HintLightWeight),
        Thread<decltype(kernel), std::decay_t<decltype(table)>>{table, launch.call});
  };
  const auto with_table = [&](auto kernel) {
    if (launch.resident != nullptr)
      return run(kernel, device::Resident{static_cast<const std::byte*>(launch.resident)});
    device::Argument<kArgumentBytes> argument;
    std::memcpy(argument.table, launch.table.bytes.data(), kArgumentBytes);
    run(kernel, argument);
  };
  // Uses only the kernels for tables of any kind, so that few are instantiated for every space.
  device::with_direction(launch.direction, [&](auto d) {
    constexpr auto kDirection = decltype(d)::value;
    if (launch.table.wide)
      with_table(device::Kernel<0, kDirection, device::Wide>());
    else
      with_table(device::Kernel<0, kDirection, device::Narrow>());
  });
}

#ifdef KOKKOS_ENABLE_SERIAL
template class KokkosDevicePacker<Kokkos::Serial>;
#endif
#ifdef KOKKOS_ENABLE_OPENMP
template class KokkosDevicePacker<Kokkos::OpenMP>;
#endif
#ifdef KOKKOS_ENABLE_CUDA
template class KokkosDevicePacker<Kokkos::Cuda>;
#endif
#ifdef KOKKOS_ENABLE_HIP
template class KokkosDevicePacker<Kokkos::HIP>;
#endif

}  // namespace halocline::dtype
