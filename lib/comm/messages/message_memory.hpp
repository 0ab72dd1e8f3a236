// SPDX-License-Identifier: BSD-3-Clause
// Owns host memory for packed bytes, and keeps spare memory for later messages.
//
// Best peer: [PEA21 section 5] keeps buffers without limit, for one thread. Here kept memory has a
// limit and can be given back, and all threads may share it.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>

namespace halocline::comm {

/// Keeps host memory in sizes that are powers of two and 64 bytes more, for a header or for
/// StreamedBytes. From 1 MiB on, sizes are whole huge pages. Must outlive the memory that it hands
/// out. A ResourceCache does the same for memory of devices.
class MessageMemory {
 public:
  /// Says who may use the memory at once.
  enum class Users { one_thread, all_threads };
  /// Keeps at most `most_kept` bytes that nobody uses.
  MessageMemory(std::size_t most_kept, Users users);
  MessageMemory(const MessageMemory&) = delete;
  MessageMemory& operator=(const MessageMemory&) = delete;
  ~MessageMemory() { release(); }

  /// Frees the memory that nobody uses.
  void release() noexcept;

 private:
  friend class HostBytes;
  // Begins spare memory.
  struct Spare {
    Spare* next;
  };
  // Keeps memory of one size.
  struct Shelf {
    MessageMemory* owner = nullptr;
    std::size_t size = 0;  // bytes that the system gives
    Spare* spare = nullptr;
  };
  std::unique_lock<std::mutex> lock() {
    return users_ == Users::all_threads ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  }

  const std::size_t most_kept_;
  const Users users_;
  std::mutex mutex_;
  std::array<Shelf, 48> shelves_;
  std::size_t kept_ = 0;
};

/// Owns host memory for packed bytes.
class HostBytes {
 public:
  /// Holds no memory.
  HostBytes() : memory_(nullptr, GiveBack{nullptr}) {}
  /// Allocates `bytes` bytes that are freed in the end. From 1 MiB on, they are on huge pages if
  /// the system has any. Throws std::bad_alloc.
  explicit HostBytes(std::size_t bytes);
  /// Takes at least `bytes` bytes that go back to `memory` in the end. Throws std::bad_alloc.
  HostBytes(MessageMemory& memory, std::size_t bytes);
  std::byte* data() const { return memory_.get(); }

 private:
  struct GiveBack {
    MessageMemory::Shelf* shelf;  // nullptr: the memory is freed
    void operator()(std::byte* memory) const noexcept;
  };
  std::unique_ptr<std::byte, GiveBack> memory_;
};

}  // namespace halocline::comm
