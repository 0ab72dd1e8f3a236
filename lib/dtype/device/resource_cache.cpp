// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/device/resource_cache.hpp"

#include "support/contract.hpp"
#include "support/error.hpp"

namespace halocline::dtype {

ResourceCache::Buffer ResourceCache::buffer(MemoryKind kind, std::size_t bytes) {
  Buffer buffer;
  if (bytes == 0) return buffer;
  void* memory = take_kept(kind, bytes);
  if (memory == nullptr) {
    try {
      memory = device_.allocate(kind, bytes);
    } catch (const NoDeviceMemory&) {
      // Kept memory may be the memory that is missing: free it and try again.
      if (kept_bytes() == 0) throw;
      release_kept();
      memory = device_.allocate(kind, bytes);
    }
  }
  buffer.cache_ = this;
  buffer.kind_ = kind;
  buffer.bytes_ = bytes;
  buffer.memory_ = memory;
  return buffer;
}

// Takes kept memory of at least `bytes` bytes and at most twice that; nullptr if there is none.
// Sets `bytes` to the size of the memory.
void* ResourceCache::take_kept(MemoryKind kind, std::size_t& bytes) {
  const std::lock_guard lock(mutex_);
  auto& kept = kept_[static_cast<std::size_t>(kind)];
  const auto found = kept.lower_bound(bytes);
  if (found == kept.end() || found->first > 2 * bytes) return nullptr;
  bytes = found->first;
  void* const memory = found->second;
  kept_bytes_ -= bytes;
  kept.erase(found);
  return memory;
}

void ResourceCache::give_back(MemoryKind kind, std::size_t bytes, void* memory) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (kept_bytes_ + bytes <= max_kept_bytes_) {
      kept_[static_cast<std::size_t>(kind)].emplace(bytes, memory);
      kept_bytes_ += bytes;
      return;
    }
  }
  device_.release(kind, memory);
}

ResourceCache::Stream ResourceCache::stream() {
  Stream out;
  {
    const std::lock_guard lock(mutex_);
    if (!streams_.empty()) {
      out.stream_ = streams_.back();
      streams_.pop_back();
      out.cache_ = this;
      return out;
    }
  }
  out.stream_ = device_.create_stream();
  out.cache_ = this;
  return out;
}

void ResourceCache::give_back(Device::Stream stream) noexcept {
  const std::lock_guard lock(mutex_);
  streams_.push_back(stream);
}

void ResourceCache::release_kept() noexcept {
  std::array<Kept, 4> kept;
  std::vector<Device::Stream> streams;
  {
    const std::lock_guard lock(mutex_);
    kept.swap(kept_);
    streams.swap(streams_);
    kept_bytes_ = 0;
  }
  for (std::size_t kind = 0; kind < kept.size(); ++kind)
    for (const auto& [bytes, memory] : kept[kind])
      device_.release(static_cast<MemoryKind>(kind), memory);
  for (const auto stream : streams) device_.destroy_stream(stream);
}

std::size_t ResourceCache::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return kept_bytes_;
}

ResourceCache& current_resources() {
  HALOCLINE_EXPECT(current_device() != nullptr);
  static auto* const instance = new ResourceCache(*current_device());
  return *instance;
}

}  // namespace halocline::dtype
