// SPDX-License-Identifier: BSD-3-Clause
// Emulates the ways in which plans reach the kernels of a device, each as a packer of one plan.
#pragma once

#include <vector>

#include "dtype/pack/device/emulated_packer.hpp"
#include "dtype/pack/device/kernels.hpp"

namespace halocline::dtype::test {

/// Executes all threads of a launch.
inline void emulate(const device::JobTable& table, const device::LaunchArguments& call,
                    device::CopyDirection direction) {
  const auto tile = std::uint64_t{call.per_thread} * device::kBlockThreads;
  device::with_kernel(table, call.instances, direction, [&](auto kernel) {
    for (std::uint64_t block = 0; block * tile < call.words; ++block)
      for (std::uint32_t thread = 0; thread < device::kBlockThreads; ++thread)
        kernel(table.bytes.data(), call, block, thread);
  });
}

/// Packs with 64-bit numbers, as for more than 2 Gi words; a thread has several words.
class WideEmulation {
 public:
  void pack(const PackPlan& plan, const void* buffer, std::int64_t count, void* packed) const {
    run(plan, buffer, count, packed, device::CopyDirection::pack);
  }
  void unpack(const PackPlan& plan, const void* packed, void* buffer, std::int64_t count) const {
    run(plan, buffer, count, packed, device::CopyDirection::unpack);
  }
  void fence() const {}

 private:
  static void run(const PackPlan& plan, const void* buffer, std::int64_t count, const void* packed,
                  device::CopyDirection direction) {
    if (plan.packed_bytes(count) == 0) return;
    const device::DevicePlan form(plan);
    const auto memory = reinterpret_cast<device::Address>(buffer),
               stream = reinterpret_cast<device::Address>(packed);
    const device::TableJob job{.plan = &form,
                               .tables = reinterpret_cast<device::Address>(form.tables().data()),
                               .count = 0,
                               .buffers = {0}};
    const auto alignment = std::int64_t{1} << device::word_log2(memory | stream);
    const auto table = device::make_table({&job, 1}, alignment, true);
    emulate(
        table,
        {memory, stream, count, table.words * static_cast<std::uint64_t>(count), device::kMaxBatch},
        direction);
  }
};

/// Returns a plan in which every instance is a job. All jobs are one region with a buffer for each
/// instance.
inline FusedPlan as_jobs(const PackPlan& plan, const void* buffer, std::int64_t count) {
  std::vector<PackJob> jobs;
  auto address = reinterpret_cast<device::Address>(buffer);
  for (std::int64_t i = 0; i < count; ++i) {
    jobs.push_back({plan, reinterpret_cast<void*>(address), 1});
    address += static_cast<device::Address>(plan.bounds().extent);
  }
  return FusedPlan(jobs);
}

class FusedEmulation {
 public:
  explicit FusedEmulation(std::size_t max_argument_bytes) : packer_(max_argument_bytes) {}

  void pack(const PackPlan& plan, const void* buffer, std::int64_t count, void* packed) const {
    packer_.pack(as_jobs(plan, buffer, count), packed);
  }
  void unpack(const PackPlan& plan, const void* packed, void* buffer, std::int64_t count) const {
    packer_.unpack(as_jobs(plan, buffer, count), packed);
  }
  void fence() const {}

 private:
  EmulatedPacker packer_;
};

}  // namespace halocline::dtype::test
