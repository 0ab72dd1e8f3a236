// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/kokkos/kokkos_packer.hpp"

#include <algorithm>
#include <cstdint>

#include "dtype/pack/host/copy_range.hpp"
#include "dtype/pack/host/copy_share.hpp"

namespace halocline::dtype {

namespace {

using host::Address;
using host::CopyDirection;

// Calls copy(first, last) for shares that make up [0, bytes).
template <class ExecutionSpace, class Copy>
void in_shares(const char* kernel, const ExecutionSpace& space, std::int64_t least_share,
               std::int64_t bytes, Copy copy) {
  const auto shares = std::min<std::int64_t>(space.concurrency(), bytes / least_share);
  if (shares < 2) return copy(0, bytes);
  using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for(
      kernel, Policy(space, 0, shares, Kokkos::ChunkSize(1)),
      [=](std::int64_t share) { copy(bytes * share / shares, bytes * (share + 1) / shares); });
}

template <CopyDirection kDirection>
constexpr const char* kKernel =
    kDirection == CopyDirection::pack ? "halocline::KokkosPacker::pack"
                                      : "halocline::KokkosPacker::unpack";

template <CopyDirection kDirection, class ExecutionSpace>
void copy_plan(const ExecutionSpace& space, std::int64_t least_share, const PackPlan& plan,
               const void* buffer, std::int64_t count, const void* packed) {
  const auto memory = reinterpret_cast<Address>(buffer), stream = reinterpret_cast<Address>(packed);
  in_shares(kKernel<kDirection>, space, least_share, plan.packed_bytes(count),
            [=, &plan](std::int64_t first, std::int64_t last) {
              host::copy_range<kDirection>(plan, memory, count, first, last,
                                           stream + static_cast<Address>(first));
            });
}

template <CopyDirection kDirection, class ExecutionSpace>
void copy_plan(const ExecutionSpace& space, std::int64_t least_share, const FusedPlan& plan,
               const void* packed) {
  const auto stream = reinterpret_cast<Address>(packed);
  in_shares(kKernel<kDirection>, space, least_share, plan.packed_bytes(),
            [=, &plan](std::int64_t first, std::int64_t last) {
              host::copy_range<kDirection>(plan, first, last, stream);
            });
}

}  // namespace

template <class ExecutionSpace>
void KokkosPacker<ExecutionSpace>::pack(const PackPlan& plan, const void* buffer,
                                        std::int64_t count, void* packed) const {
  copy_plan<CopyDirection::pack>(space_, least_share_, plan, buffer, count, packed);
}

template <class ExecutionSpace>
void KokkosPacker<ExecutionSpace>::unpack(const PackPlan& plan, const void* packed, void* buffer,
                                          std::int64_t count) const {
  copy_plan<CopyDirection::unpack>(space_, least_share_, plan, buffer, count, packed);
}

template <class ExecutionSpace>
void KokkosPacker<ExecutionSpace>::pack(const FusedPlan& plan, void* packed) const {
  copy_plan<CopyDirection::pack>(space_, least_share_, plan, packed);
}

template <class ExecutionSpace>
void KokkosPacker<ExecutionSpace>::unpack(const FusedPlan& plan, const void* packed) const {
  copy_plan<CopyDirection::unpack>(space_, least_share_, plan, packed);
}

template <class ExecutionSpace>
void KokkosPacker<ExecutionSpace>::copy(const CopyPlan& plan) const {
  in_shares(
      "halocline::KokkosPacker::copy", space_, least_share_, plan.bytes(),
      [&plan](std::int64_t first, std::int64_t last) { host::copy_share(plan, first, last); });
}

#ifdef KOKKOS_ENABLE_SERIAL
template class KokkosPacker<Kokkos::Serial>;
#endif
#ifdef KOKKOS_ENABLE_OPENMP
template class KokkosPacker<Kokkos::OpenMP>;
#endif

}  // namespace halocline::dtype
