// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/cuda/cuda_packer.hpp"

#include <limits>

#include "dtype/pack/cuda/copy_kernels.cuh"

namespace halocline::dtype {

namespace device {

extern template void launch_unrolled<1>(const Grid&, CopyDirection);
extern template void launch_unrolled<2>(const Grid&, CopyDirection);
extern template void launch_unrolled<3>(const Grid&, CopyDirection);
extern template void launch_unrolled<4>(const Grid&, CopyDirection);
extern template void launch_general<Narrow>(const Grid&, CopyDirection);
extern template void launch_general<Wide>(const Grid&, CopyDirection);

}  // namespace device

std::shared_ptr<const void> CudaPacker::upload(std::span<const std::byte> bytes) const {
  const halocline::detail::OnDevice scope(device_);
  void* copy = nullptr;
  HALOCLINE_CUDA(cudaMalloc(&copy, bytes.size()));
  // At exit the device may be gone before the last plan.
  std::shared_ptr<const void> owner(copy, [](const void* p) { cudaFree(const_cast<void*>(p)); });
  // The copy is complete only when the stream is: the host's memory is pageable.
  HALOCLINE_CUDA(
      cudaMemcpyAsync(copy, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, stream_));
  HALOCLINE_CUDA(cudaStreamSynchronize(stream_));
  return owner;
}

std::size_t CudaPacker::argument_bytes(std::size_t bytes) const {
  if (bytes <= device::kSmallArgument) return device::kSmallArgument;
  return bytes <= device::kLargeArgument ? device::kLargeArgument : 0;
}

void CudaPacker::launch(const Launch& launch) const {
  if (launch.blocks > std::numeric_limits<std::int32_t>::max())
    throw ConfigError("pack of " + std::to_string(launch.call.words) +
                      " words is too large for one kernel: use fewer instances");
  const halocline::detail::OnDevice scope(device_);
  const bool travels = launch.resident == nullptr;
  const device::Grid grid{.table = travels ? launch.table.bytes.data() : launch.resident,
                          .argument_bytes = travels ? launch.table.bytes.size() : 0,
                          .call = launch.call,
                          .blocks = static_cast<unsigned>(launch.blocks),
                          .stream = stream_};
  const auto& table = launch.table;
  if (table.wide) return device::launch_general<device::Wide>(grid, launch.direction);
  switch (table.unrolled_levels(launch.call.instances)) {
    case 0:
      return device::launch_general<device::Narrow>(grid, launch.direction);
    case 1:
      return device::launch_unrolled<1>(grid, launch.direction);
    case 2:
      return device::launch_unrolled<2>(grid, launch.direction);
    case 3:
      return device::launch_unrolled<3>(grid, launch.direction);
    default:
      return device::launch_unrolled<4>(grid, launch.direction);
  }
}

void CudaPacker::fence() const {
  HALOCLINE_CUDA(cudaStreamSynchronize(stream_));
}

}  // namespace halocline::dtype
