// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/device/emulated_packer.hpp"

#include <algorithm>
#include <vector>

#include "dtype/pack/device/kernels.hpp"

namespace halocline::dtype {

std::shared_ptr<const void> EmulatedPacker::upload(std::span<const std::byte> bytes) const {
  auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  const auto* data = copy->data();
  return {std::move(copy), data};
}

void EmulatedPacker::launch(const Launch& launch) const {
  const auto* table = launch.resident != nullptr ? static_cast<const std::byte*>(launch.resident)
                                                 : launch.table.bytes.data();
  device::with_kernel(launch.table, launch.direction, [&](auto kernel) {
    for (std::uint64_t block = 0; block < launch.blocks; ++block)
      for (std::uint32_t thread = 0; thread < device::kBlockThreads; ++thread)
        kernel(table, launch.call, block, thread);
  });
}

}  // namespace halocline::dtype
