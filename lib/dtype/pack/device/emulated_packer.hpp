// SPDX-License-Identifier: BSD-3-Clause
// Executes the device's packer on the host, thread by thread.
#pragma once

#include <functional>
#include <utility>

#include "dtype/pack/device/table_packer.hpp"

namespace halocline::dtype {

/// Executes every thread of every launch one after the other, with the code of devices.
///
/// Tests find errors of that code without a device, misaligned words among them if contracts are
/// checked. Done on return, unless a stream records it. O(packed bytes), slowly.
class EmulatedPacker final : public TablePacker {
 public:
  /// Makes a packer that uploads tables of more than `max_argument_bytes` before a launch, as
  /// devices do.
  explicit EmulatedPacker(std::size_t max_argument_bytes = 4032)
      : max_argument_bytes_(max_argument_bytes) {}

  /// Connects the packer to an emulated stream. expect_room() throws NoDeviceMemory if there is no
  /// memory for a table. submit() executes or records a launch. wait() returns when the stream is
  /// done.
  struct OfStream {
    std::function<void(std::size_t bytes)> expect_room;
    std::function<void(std::function<void()>)> submit;
    std::function<void()> wait;
  };
  explicit EmulatedPacker(OfStream stream) : EmulatedPacker() { stream_ = std::move(stream); }

  void fence() const override { stream_.wait(); }

 private:
  Backend backend() const override { return Backend::emulated; }
  std::shared_ptr<const void> upload(std::span<const std::byte> bytes) const override;
  std::size_t argument_bytes(std::size_t bytes) const override {
    return bytes <= max_argument_bytes_ ? bytes : 0;
  }
  void launch(const Launch& launch) const override;

  std::size_t max_argument_bytes_;
  OfStream stream_{.expect_room = [](std::size_t) {},
                   .submit = [](const std::function<void()>& launch) { launch(); },
                   .wait = [] {}};
};

}  // namespace halocline::dtype
