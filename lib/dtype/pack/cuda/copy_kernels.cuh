// SPDX-License-Identifier: BSD-3-Clause
// Defines the kernels around copy_thread(), and their launch.
//
// Best peer: [PEA21]'s kernels are launched for each region and each field and waited for. Here one
// launch has all of an exchange in its arguments, up to the 32 KiB that a launch can carry.
#pragma once

#include "dtype/pack/cuda/cuda_check.cuh"
#include "dtype/pack/device/kernels.hpp"

namespace halocline::dtype::device {

/// Are the sizes of a table that travels with the launch. Arguments of a kernel cost little up to 4
/// KiB. 32,764 bytes are their limit.
inline constexpr std::size_t kSmallArgument = 4032, kLargeArgument = 32704;
static_assert(kSmallArgument + sizeof(LaunchArguments) <= 4096);
static_assert(kLargeArgument + sizeof(LaunchArguments) <= 32764);

template <class Kernel, class Table>
__global__ void __launch_bounds__(kBlockThreads)
    copy_kernel(const __grid_constant__ Table argument,
                const __grid_constant__ LaunchArguments call) {
  Kernel()(argument.table, call, blockIdx.x, threadIdx.x);
}

/// Describes a launch. `table` points to an Argument of `argument_bytes` bytes. If `argument_bytes`
/// is 0, it is the address of the table in the memory of the device.
struct Grid {
  const void* table;
  std::size_t argument_bytes;
  LaunchArguments call;
  unsigned blocks;
  cudaStream_t stream;
};

template <class Kernel>
void launch(const Grid& grid) {
  const auto start = [&](auto* kernel, const void* table) {
    void* arguments[] = {const_cast<void*>(table), const_cast<LaunchArguments*>(&grid.call)};
    HALOCLINE_CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(grid.blocks),
                                    dim3(kBlockThreads), arguments, 0, grid.stream));
  };
  if (grid.argument_bytes == kSmallArgument)
    return start(copy_kernel<Kernel, Argument<kSmallArgument>>, grid.table);
  if (grid.argument_bytes == kLargeArgument)
    return start(copy_kernel<Kernel, Argument<kLargeArgument>>, grid.table);
  return start(copy_kernel<Kernel, Resident>, &grid.table);
}

/// Launches the kernel with kLevels unrolled loops. Each instance of launch_unrolled and
/// launch_general is in a source of its own.
template <int kLevels>
void launch_unrolled(const Grid& grid, CopyDirection direction) {
  with_direction(direction,
                 [&](auto d) { launch<Kernel<kLevels, decltype(d)::value, Narrow>>(grid); });
}

/// Launches the kernel for tables of any kind.
template <class Form>
void launch_general(const Grid& grid, CopyDirection direction) {
  with_direction(direction, [&](auto d) { launch<Kernel<0, decltype(d)::value, Form>>(grid); });
}

}  // namespace halocline::dtype::device
