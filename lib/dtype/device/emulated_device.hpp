// SPDX-License-Identifier: BSD-3-Clause
// A device made of the host, for tests of everything that is built on devices.
#pragma once

#include <unistd.h>

#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "dtype/device/device.hpp"

namespace halocline::dtype {

/// Allocates memory of all kinds from the host and remembers which is which; copies and packs by
/// the code of the device's kernels, as late as a device may: when somebody waits for the stream.
/// Streams must exist, and what is recorded may neither allocate nor wait; that memory is followed
/// by those alone who can address it on a real device is not checked. Memory of the device lies in
/// pages that other processes of the user can open, between pages that nobody can touch.
class EmulatedDevice final : public Device {
 public:
  /// Throws from allocate() beyond `max_bytes`. Memory that it did not allocate counts as of kind
  /// `elsewhere`, so that any array can play the one of a device.
  explicit EmulatedDevice(std::size_t max_bytes = std::size_t(-1),
                          MemoryKind elsewhere = MemoryKind::host);
  ~EmulatedDevice() override;

  /// Sets `max_bytes` anew; what is allocated stays.
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

  /// What is allocated now, and the streams that exist.
  std::size_t bytes() const;
  std::size_t streams() const;
  /// How often a recording was replayed.
  std::size_t replays() const;

 private:
  using Operation = std::function<void()>;
  using Operations = std::vector<Operation>;
  class EmulatedRecording;
  struct Block {
    MemoryKind kind;
    std::size_t bytes;
    std::int64_t file_offset;  // of memory of the device, which lies in a file
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
  int file_ = -1;  // without a name, which other processes find by ours and its number
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
