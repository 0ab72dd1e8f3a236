// SPDX-License-Identifier: BSD-3-Clause
// Keeps memory and streams of a device for their next user. To make them costs up to milliseconds
// and may stop the device.
//
// Best peer: [PEA21 section 5] caches streams, events and buffers without limit, for one thread.
// Here kept memory has a limit and can be given back, and all threads may ask.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "dtype/device/device.hpp"

namespace halocline::dtype {

/// Keeps buffers and streams of one device. Makes nothing before somebody asks for it. Thread-safe.
/// Must outlive the buffers and streams that it hands out.
class ResourceCache {
 public:
  static constexpr std::size_t kDefaultLimit = std::size_t{1} << 30;

  /// Keeps at most `max_kept_bytes` of memory that nobody uses.
  explicit ResourceCache(Device& device, std::size_t max_kept_bytes = kDefaultLimit)
      : device_(device), max_kept_bytes_(max_kept_bytes) {}
  ResourceCache(const ResourceCache&) = delete;
  ResourceCache& operator=(const ResourceCache&) = delete;
  ~ResourceCache() { release_kept(); }

  /// Is memory that goes back to the cache in the end. Work of the device that uses the memory must
  /// be done by then.
  class Buffer {
   public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept { swap(other); }
    Buffer& operator=(Buffer&& other) noexcept {
      Buffer(std::move(other)).swap(*this);
      return *this;
    }
    ~Buffer() {
      if (cache_ != nullptr) cache_->give_back(kind_, bytes_, memory_);
    }
    std::byte* data() const { return static_cast<std::byte*>(memory_); }

   private:
    friend class ResourceCache;
    void swap(Buffer& other) noexcept {
      std::swap(cache_, other.cache_);
      std::swap(kind_, other.kind_);
      std::swap(bytes_, other.bytes_);
      std::swap(memory_, other.memory_);
    }
    ResourceCache* cache_ = nullptr;
    MemoryKind kind_ = MemoryKind::host;
    std::size_t bytes_ = 0;
    void* memory_ = nullptr;
  };
  /// Returns at least `bytes` bytes, aligned to 256, with any contents; an empty Buffer for 0
  /// bytes. Takes kept memory if it is at most twice as large. Throws NoDeviceMemory if there is
  /// none even when nothing is kept. O(log buffers), plus an allocation if no kept memory fits.
  Buffer buffer(MemoryKind kind, std::size_t bytes);

  /// Is a stream that goes back to the cache in the end. All its work must be done by then.
  class Stream {
   public:
    Stream() = default;
    Stream(Stream&& other) noexcept
        : cache_(std::exchange(other.cache_, nullptr)), stream_(other.stream_) {}
    Stream& operator=(Stream&& other) noexcept {
      std::swap(cache_, other.cache_);
      std::swap(stream_, other.stream_);
      return *this;
    }
    ~Stream() {
      if (cache_ != nullptr) cache_->give_back(stream_);
    }
    Device::Stream get() const { return stream_; }

   private:
    friend class ResourceCache;
    ResourceCache* cache_ = nullptr;
    Device::Stream stream_ = nullptr;
  };
  /// Returns a kept stream, or a new one if none is kept.
  Stream stream();

  /// Frees all memory and streams that nobody uses.
  void release_kept() noexcept;

  /// Returns the bytes of kept memory, which nobody uses.
  std::size_t kept_bytes() const;

  Device& device() const { return device_; }

 private:
  using Kept = std::multimap<std::size_t, void*>;  // by size
  void* take_kept(MemoryKind kind, std::size_t& bytes);
  void give_back(MemoryKind kind, std::size_t bytes, void* memory) noexcept;
  void give_back(Device::Stream stream) noexcept;

  Device& device_;
  const std::size_t max_kept_bytes_;
  mutable std::mutex mutex_;
  std::array<Kept, 4> kept_;  // by MemoryKind
  std::size_t kept_bytes_ = 0;
  std::vector<Device::Stream> streams_;
};

/// Returns the cache of current_device(), which must not be nullptr. The cache is never destroyed.
ResourceCache& current_resources();

}  // namespace halocline::dtype
