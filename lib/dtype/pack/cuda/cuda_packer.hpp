// SPDX-License-Identifier: BSD-3-Clause
// Packing on a CUDA stream.
#pragma once

#include "dtype/pack/device/table_packer.hpp"

struct CUstream_st;  // *cudaStream_t

namespace halocline::dtype {

/// Packs by one kernel on the caller's stream, wherever the device can reach the buffers: its own
/// memory, managed memory, mapped host memory. Nothing synchronises but fence(), and the first use
/// of a plan that has lists or more jobs than fit into a kernel's arguments. The stream is the
/// caller's and must outlive the packer. Errors that earlier work of the stream has met are thrown
/// by whichever call learns of them, as CudaError; lack of memory for a plan or a kernel as
/// NoDeviceMemory. O(packed bytes).
class CudaPacker final : public TablePacker {
 public:
  /// `device`: the index of the device that the stream is of; any may be current when packing.
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
