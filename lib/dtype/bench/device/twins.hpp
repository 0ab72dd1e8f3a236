// SPDX-License-Identifier: BSD-3-Clause
// What others do with a strided type on a device, to be measured beside our packer. All of it needs
// CUDA; elsewhere there is none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "dtype/device/device.hpp"
#include "dtype/pack/pack_plan.hpp"

namespace halocline::dtype::bench {

using host::Direction;

/// [PEA21 section 3.3]: counts[0] consecutive bytes, counts[1] of these strides[1] bytes apart,
/// counts[2] of those strides[2] bytes apart.
struct StridedBlock {
  static constexpr std::size_t kMaxDimensions = 3;
  std::int64_t start = 0;
  std::size_t dimensions = 1;
  std::array<std::int64_t, kMaxDimensions> counts = {1, 1, 1}, strides = {1, 0, 0};
  std::int64_t extent = 0;  ///< between the objects of a call

  std::int64_t bytes() const { return counts[0] * counts[1] * counts[2]; }
};

/// Nothing for types of more dimensions, and for those whose packed order is not that of the
/// strides: there the paper's kernels would pack other bytes (errata B.1).
std::optional<StridedBlock> strided_block(const CanonicalForm& form);

/// `count` objects.
struct StridedCall {
  StridedBlock block;
  std::byte* memory;
  std::byte* packed;
  std::int64_t count;
};

/// Words of `word` bytes at index[i] * word in memory and i * word in the packed bytes. The list is
/// in the memory of the device.
struct GatherCall {
  const std::int32_t* index;
  std::int64_t words, word;
  std::byte* memory;
  std::byte* packed;
};

/// Each of these gives work to the stream and returns.
class Twins {
 public:
  virtual ~Twins() = default;

  virtual void empty_kernel() const = 0;
  /// The kernel of [PEA21 section 3.3] for this call.
  virtual void tempi(const StridedCall& call, Direction direction) const = 0;
  /// One cudaMemcpy3DAsync for each object.
  virtual void memcpy3d(const StridedCall& call, Direction direction) const = 0;
  /// The kernel that applications write for index lists: a word for each thread.
  virtual void gather(const GatherCall& call, Direction direction) const = 0;
};

/// Whether the strides are such that memcpy3d() can follow them.
bool fits_memcpy3d(const StridedBlock& block);

/// Twins on a stream of this device; nullptr if it is not a CUDA device.
std::unique_ptr<Twins> make_twins(const Device& device, Device::Stream stream);

}  // namespace halocline::dtype::bench
