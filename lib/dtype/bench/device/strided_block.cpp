// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/bench/device/twins.hpp"

namespace halocline::dtype::bench {

std::optional<StridedBlock> strided_block(const CanonicalForm& form) {
  const auto nest = form.nest();
  if (!nest || nest->levels.size() >= StridedBlock::kMaxDimensions) return std::nullopt;
  StridedBlock block;
  block.start = nest->start;
  block.extent = nest->bounds.extent;
  block.counts[0] = nest->run;
  auto packed_stride = nest->run;
  for (const auto& level : nest->levels) {
    if (level.packed_stride != packed_stride) return std::nullopt;
    block.counts[block.dimensions] = level.count;
    block.strides[block.dimensions] = level.stride;
    ++block.dimensions;
    packed_stride *= level.count;
  }
  return block;
}

bool fits_memcpy3d(const StridedBlock& block) {
  if (block.strides[1] < (block.counts[1] > 1 ? block.counts[0] : 0)) return false;
  return block.counts[2] == 1 || (block.strides[2] % block.strides[1] == 0 &&
                                  block.strides[2] / block.strides[1] >= block.counts[1]);
}

}  // namespace halocline::dtype::bench
