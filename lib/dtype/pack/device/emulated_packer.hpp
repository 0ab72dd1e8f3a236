// SPDX-License-Identifier: BSD-3-Clause
// The device's packer on the host, thread by thread.
#pragma once

#include "dtype/pack/device/table_packer.hpp"

namespace halocline::dtype {

/// Executes every thread of every launch one after the other, by the code that a device would, so
/// that tests find its errors without one: also, where contracts are checked, words that are not
/// aligned. Done on return. O(packed bytes), slowly.
class EmulatedPacker final : public TablePacker {
 public:
  /// Tables beyond `max_argument_bytes` are copied first, as a device's are.
  explicit EmulatedPacker(std::size_t max_argument_bytes = 4032)
      : max_argument_bytes_(max_argument_bytes) {}
  void fence() const override {}

 private:
  Backend backend() const override { return Backend::emulated; }
  std::shared_ptr<const void> upload(std::span<const std::byte> bytes) const override;
  std::size_t argument_bytes(std::size_t bytes) const override {
    return bytes <= max_argument_bytes_ ? bytes : 0;
  }
  void launch(const Launch& launch) const override;

  std::size_t max_argument_bytes_;
};

}  // namespace halocline::dtype
