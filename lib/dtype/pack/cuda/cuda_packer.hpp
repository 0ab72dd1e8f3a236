// SPDX-License-Identifier: BSD-3-Clause
// Packs on a CUDA stream.
#pragma once

#include "dtype/pack/device/table_packer.hpp"

struct CUstream_st;  // *cudaStream_t

namespace halocline::dtype {

/// Packs by one kernel on the caller's stream. O(packed bytes).
///
/// Buffers may be in any memory that the device can reach: its own memory, managed memory, mapped
/// host memory. Only fence() synchronises, and the first use of a plan with lists or with more jobs
/// than a kernel's arguments hold. The stream belongs to the caller and must outlive the packer.
///
/// Any call may throw an error of earlier work in the stream as CudaError. Lack of memory for a
/// plan or a kernel is thrown as NoDeviceMemory.
class CudaPacker final : public TablePacker {
 public:
  /// Packs on `stream`, which belongs to the device with index `device`. Any device may be current
  /// when packing.
  CudaPacker(CUstream_st* stream, int device) : stream_(stream), device_(device) {}
  void fence() const override;

 private:
  Backend backend() const override { return Backend::cuda; }
  std::shared_ptr<const void> upload(std::span<const std::byte> bytes) const override;
  std::size_t argument_bytes(std::size_t bytes) const override;
  void launch(const Launch& launch) const override;

  CUstream_st* stream_;
  int device_;
};

}  // namespace halocline::dtype
