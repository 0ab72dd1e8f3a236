// SPDX-License-Identifier: BSD-3-Clause
// Emulates a device on the host, to test everything that is built on devices.
#pragma once

#include <unistd.h>

#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "dtype/device/device.hpp"

namespace halocline::dtype {

/// Emulates a device. Allocates memory of all kinds from the host, and remembers the kind of each
/// block. Copies and packs by the code of the device's kernels, as late as a device may: when
/// somebody waits for the stream. Throws EnvironmentError if a stream does not exist, or if a
/// recording allocates or waits.
///
/// Does not check pointers: the host can follow those to device memory, which a real host cannot.
/// Memory of the device lies in pages that other processes of the user can open. Each allocation
/// lies between pages that nobody can touch.
class EmulatedDevice final : public Device {
 public:
  /// Makes a device of at most `max_bytes` bytes; allocate() throws NoDeviceMemory beyond them.
  /// Memory that the device did not allocate counts as `elsewhere`. So any array can play the one
  /// of a device.
  explicit EmulatedDevice(std::size_t max_bytes = std::size_t(-1),
                          MemoryKind elsewhere = MemoryKind::host);
  ~EmulatedDevice() override;

  /// Sets `max_bytes` anew. Memory that is allocated stays.
  void limit(std::size_t max_bytes);

  const Properties& properties() const override { return properties_; }
  MemoryKind kind_of(const void* address) const override;
  void* allocate(MemoryKind kind, std::size_t bytes) override;
  void release(MemoryKind kind, void* memory) noexcept override;
  std::size_t free_bytes() const override;
  std::optional<SharedMemory> share(const void* address) const override;
  void* open(const SharedMemory& shared) override;
  void close(void* opened) noexcept override;
  Stream create_stream() override;
  void destroy_stream(Stream stream) noexcept override;
  void copy(void* to, const void* from, std::size_t bytes, Stream stream) override;
  void launch_nothing(Stream stream) override;
  void synchronize(Stream stream) override;
  std::unique_ptr<Packer> make_packer(Stream stream) override;
  std::unique_ptr<Recording> record(Stream stream, const std::function<void()>& work) override;

  /// Returns the bytes that are allocated now.
  std::size_t bytes() const;
  /// Returns the number of streams that exist now.
  std::size_t streams() const;
  /// Returns how often recordings were replayed.
  std::size_t replays() const;

 private:
  using Operation = std::function<void()>;
  using Operations = std::vector<Operation>;
  class EmulatedRecording;
  struct Block {
    MemoryKind kind;
    std::size_t bytes;
    std::int64_t file_offset;  // in bytes, of memory of kind `device`, which lies in a file
  };
  std::byte* map(Block& block);
  void free(const std::byte* memory, const Block& block);
  void submit(Stream stream, Operation operation);
  void run(Stream stream);
  bool is_recording(Stream stream) const;
  void check(Stream stream) const;
  void check_not_recording(const char* what) const;

  const Properties properties_{.name = "emulated device",
                               .driver = "none",
                               .id = "process " + std::to_string(getpid()),
                               .emulated = true};
  std::size_t max_bytes_;
  MemoryKind elsewhere_;
  mutable std::mutex mutex_;
  std::map<const std::byte*, Block> blocks_;
  int file_ = -1;  // a file without a name; others open it in /proc by our process and this number
  std::int64_t file_bytes_ = 0;
  std::map<void*, std::size_t> opened_;
  std::map<Stream, std::unique_ptr<int>> streams_;
  struct Begun {
    std::thread::id by;
    Operations operations;
  };
  std::map<Stream, Begun> recording_;
  std::map<Stream, Operations> submitted_;
  std::size_t bytes_ = 0, replays_ = 0;
};

}  // namespace halocline::dtype
