// SPDX-License-Identifier: BSD-3-Clause
// Packs on the calling thread.
#pragma once

#include "dtype/pack/packer.hpp"

namespace halocline::dtype {

/// Packs on the calling thread. Done on return. Thread-safe: it has no state. O(packed bytes).
class HostPacker final : public Packer {
 public:
  void pack(const PackPlan& plan, const void* buffer, std::int64_t count,
            void* packed) const override;
  void unpack(const PackPlan& plan, const void* packed, void* buffer,
              std::int64_t count) const override;
  void pack(const FusedPlan& plan, void* packed) const override;
  void unpack(const FusedPlan& plan, const void* packed) const override;
  void copy(const CopyPlan& plan) const override;
  void fence() const override {}
};

}  // namespace halocline::dtype
