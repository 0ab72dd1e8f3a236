// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/device/emulated_packer.hpp"

#include <algorithm>
#include <vector>

#include "dtype/pack/device/kernels.hpp"

namespace halocline::dtype {

std::shared_ptr<const void> EmulatedPacker::upload(std::span<const std::byte> bytes) const {
  stream_.expect_room(bytes.size());
  stream_.wait();  // an upload to a device waits, too
  auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  const auto* data = copy->data();
  return {std::move(copy), data};
}

void EmulatedPacker::launch(const Launch& launch) const {
  std::function<void(const std::byte*)> run;
  device::with_kernel(launch.table, launch.call.instances, launch.direction, [&](auto kernel) {
    run = [kernel, call = launch.call, blocks = launch.blocks](const std::byte* table) {
      for (std::uint64_t block = 0; block < blocks; ++block)
        for (std::uint32_t thread = 0; thread < device::kBlockThreads; ++thread)
          kernel(table, call, block, thread);
    };
  });
  if (launch.resident != nullptr)
    stream_.submit([run, table = static_cast<const std::byte*>(launch.resident)] { run(table); });
  else
    stream_.submit([run, table = launch.table.bytes] { run(table.data()); });
}

}  // namespace halocline::dtype
