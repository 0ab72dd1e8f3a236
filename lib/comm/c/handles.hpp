// SPDX-License-Identifier: BSD-3-Clause
// Gives objects to callers in other languages by handles. A handle that was freed is recognised:
// it is a number with a generation, and never an address.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "support/error.hpp"

namespace halocline::c {

/// Holds objects of one kind, each with a handle. Allocate it and never free it: handles may be
/// used until the end of the process. Thread-safe. A look-up takes no lock.
template <class T>
class Handles {
 public:
  using Handle = std::uintptr_t;

  /// Keeps an object until take(). Returns its handle, which is not 0. Throws ConfigError if there
  /// are too many.
  Handle insert(std::unique_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) add_chunk();
    const auto index = free_.back();
    free_.pop_back();
    auto& slot = *slot_of(index);
    const auto handle = (++slot.generation << kIndexBits) | index;
    slot.object = std::move(object);
    slot.handle.store(handle, std::memory_order_release);
    return handle;
  }

  /// Returns the object of a handle; nullptr for a handle that was freed or never given.
  T* find(Handle handle) const {
    auto* const slot = slot_of(handle % kMost);
    return slot != nullptr && handle != 0 && slot->handle.load(std::memory_order_acquire) == handle
               ? slot->object.get()
               : nullptr;
  }

  /// Takes the object of a handle out; nullptr for a handle that was freed or never given.
  std::unique_ptr<T> take(Handle handle) {
    const std::lock_guard lock(mutex_);
    if (find(handle) == nullptr) return nullptr;
    auto& slot = *slot_of(handle % kMost);
    slot.handle.store(0, std::memory_order_relaxed);
    free_.push_back(handle % kMost);
    return std::move(slot.object);
  }

 private:
  static constexpr int kIndexBits = 20, kChunkBits = 8;
  static constexpr Handle kMost = Handle{1} << kIndexBits, kChunk = Handle{1} << kChunkBits;

  struct Slot {
    std::atomic<Handle> handle{0};  // 0: free
    Handle generation = 0;
    std::unique_ptr<T> object;
  };

  Slot* slot_of(Handle index) const {
    auto* const chunk = chunks_[index >> kChunkBits].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : chunk + index % kChunk;
  }

  void add_chunk() {
    if (number_ == chunks_.size())
      throw ConfigError("there are too many objects of this kind: free some of them");
    chunks_[number_].store(new Slot[kChunk], std::memory_order_release);
    for (auto i = kChunk; i > 0; --i) free_.push_back(number_ * kChunk + i - 1);
    ++number_;
  }

  std::mutex mutex_;
  std::size_t number_ = 0;  // of chunks
  std::vector<Handle> free_;
  std::array<std::atomic<Slot*>, kMost / kChunk> chunks_{};
};

}  // namespace halocline::c
