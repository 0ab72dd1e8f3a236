// SPDX-License-Identifier: BSD-3-Clause
// A device made of the host, for tests of everything that is built on devices.
#pragma once

#include <map>
#include <mutex>

#include "dtype/device/device.hpp"

namespace halocline::dtype {

/// Allocates memory of all kinds from the host and remembers which is which; copies and packs at
/// once, by the code of the device's kernels. Streams must exist; that memory is followed by those
/// alone who can address it on a real device is not checked.
class EmulatedDevice final : public Device {
 public:
  /// Throws from allocate() beyond `max_bytes`. Memory that it did not allocate counts as of kind
  /// `elsewhere`, so that any array can play the one of a device.
  explicit EmulatedDevice(std::size_t max_bytes = std::size_t(-1),
                          MemoryKind elsewhere = MemoryKind::host)
      : max_bytes_(max_bytes), elsewhere_(elsewhere) {}
  ~EmulatedDevice() override;

  const Properties& properties() const override { return properties_; }
  MemoryKind kind_of(const void* address) const override;
  void* allocate(MemoryKind kind, std::size_t bytes) override;
  void release(MemoryKind kind, void* memory) noexcept override;
  Stream create_stream() override;
  void destroy_stream(Stream stream) noexcept override;
  void copy(void* to, const void* from, std::size_t bytes, Stream stream) override;
  void launch_nothing(Stream stream) override;
  void synchronize(Stream stream) override;
  std::unique_ptr<Packer> make_packer(Stream stream) override;

  /// What is allocated now, and the streams that exist.
  std::size_t bytes() const;
  std::size_t streams() const;

 private:
  struct Block {
    MemoryKind kind;
    std::size_t bytes;
  };
  void check(Stream stream) const;

  const Properties properties_{.name = "emulated device", .driver = "none", .emulated = true};
  std::size_t max_bytes_;
  MemoryKind elsewhere_;
  mutable std::mutex mutex_;
  std::map<const std::byte*, Block> blocks_;
  std::map<Stream, std::unique_ptr<int>> streams_;
  std::size_t bytes_ = 0;
};

}  // namespace halocline::dtype
