// SPDX-License-Identifier: BSD-3-Clause
// Declares the methods of other software for a strided type on a device, to be measured beside our
// packer. All of them need CUDA.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "dtype/device/device.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::dtype::bench {

using detail::CopyDirection;

/// Describes an object as in [PEA21 section 3.3]: counts[0] consecutive bytes, counts[1] of these
/// rows strides[1] bytes apart, and counts[2] of these planes strides[2] bytes apart.
struct StridedBlock {
  static constexpr std::size_t kMaxDimensions = 3;
  std::int64_t start = 0;
  std::size_t dimensions = 1;
  std::array<std::int64_t, kMaxDimensions> counts = {1, 1, 1}, strides = {1, 0, 0};
  std::int64_t extent = 0;  ///< distance between the objects of a call

  std::int64_t bytes() const { return counts[0] * counts[1] * counts[2]; }
};

/// Describes a call for `count` objects.
struct StridedCall {
  StridedBlock block;
  std::byte* memory;
  std::byte* packed;
  std::int64_t count;
};

/// Describes words of `word` bytes at index[i] * word in memory and i * word in the packed bytes.
/// The list is in the memory of the device.
struct GatherCall {
  const std::int32_t* index;
  std::int64_t words, word;
  std::byte* memory;
  std::byte* packed;
};

/// Executes the methods of other software. Each function gives work to the stream and returns.
class Twins {
 public:
  virtual ~Twins() = default;

  virtual void empty_kernel() const = 0;
  /// Launches the kernel of [PEA21 section 3.3] for this call.
  virtual void tempi(const StridedCall& call, CopyDirection direction) const = 0;
  /// Calls cudaMemcpy3DAsync once for each object.
  virtual void memcpy3d(const StridedCall& call, CopyDirection direction) const = 0;
  /// Launches the kernel that applications write for index lists: a word for each thread.
  virtual void gather(const GatherCall& call, CopyDirection direction) const = 0;
};

/// Returns twins on a stream of this device; nullptr if it is not a CUDA device.
std::unique_ptr<Twins> make_twins(const Device& device, Device::Stream stream);

}  // namespace halocline::dtype::bench
