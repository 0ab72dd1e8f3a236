// SPDX-License-Identifier: BSD-3-Clause
// Defines two calls of the CUDA runtime as they were before CUDA 13. Kokkos 4.7.00 makes these
// calls (4.7.01 knows CUDA 13). Included in front of all sources that are compiled with such a
// Kokkos.
#pragma once

#ifdef __CUDACC__
#include <cuda_runtime.h>

#if CUDART_VERSION >= 13000
inline cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                            const cudaGraphNode_t* to, size_t count) {
  return cudaGraphAddDependencies(graph, from, to, nullptr, count);
}

inline cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, int device,
                                        cudaStream_t stream) {
  const bool to_host = device == cudaCpuDeviceId;
  cudaMemLocation location{};
  location.type = to_host ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  location.id = to_host ? 0 : device;
  return cudaMemPrefetchAsync(pointer, bytes, location, 0, stream);
}
#endif
#endif
