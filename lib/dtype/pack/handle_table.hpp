// SPDX-License-Identifier: BSD-3-Clause
// What we know of datatypes and of communicators, by handle, until they are freed.
//
// Best peer: [PEA21] looks every type up in a hash map of the C++ library and keeps entries of
// freed types. Here a look-up is one probe of a flat table without a lock, and MPI itself drops the
// entry when the handle is freed.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "dtype/support/once.hpp"

namespace halocline::dtype {

/// What handles are of; in some MPIs all are integers.
enum class HandlesOf { datatypes, communicators };

/// A number for a handle, which is a pointer or an integer.
template <class Handle>
std::uintptr_t key_of(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>)
    return reinterpret_cast<std::uintptr_t>(handle);
  else
    return static_cast<std::uintptr_t>(handle);
}

namespace detail {

/// What MPI has to do with a table. It is never destroyed, since MPI drops entries when it likes,
/// even after the statics are gone.
class HandleTableBase {
 public:
  explicit HandleTableBase(HandlesOf of) : of_(of) {}
  HandleTableBase(const HandleTableBase&) = delete;
  HandleTableBase& operator=(const HandleTableBase&) = delete;

 protected:
  using Key = std::uintptr_t;

  ~HandleTableBase() = default;

  /// Lets MPI erase the entry when the handle is freed; not of predefined types, which never are,
  /// and on which some MPIs take no attribute. Once for an entry: again would drop it. Throws
  /// MpiError, and EnvironmentError once MPI_Finalize has begun.
  void attach_to_type(MPI_Datatype handle);
  void attach_to_communicator(MPI_Comm handle);
  virtual void erase(Key key) = 0;

 private:
  static int on_free_type(MPI_Datatype handle, int keyval, void* value, void* table);
  static int on_free_communicator(MPI_Comm handle, int keyval, void* value, void* table);
  void make_keyval();

  HandlesOf of_;
  Once once_;
  int keyval_ = MPI_KEYVAL_INVALID;
};

}  // namespace detail

/// One T for each handle that it was given for. All of it is local and thread-safe as far as the
/// MPI is. To be allocated and never freed.
template <class T, HandlesOf of = HandlesOf::datatypes>
class HandleTable final : detail::HandleTableBase {
 public:
  using Handle = std::conditional_t<of == HandlesOf::datatypes, MPI_Datatype, MPI_Comm>;

  HandleTable() : HandleTableBase(of) {}

  /// False if this handle never had one, which is told so of most of MPI's own. O(1), takes no
  /// lock.
  bool may_have(Handle handle) const {
    const auto lowest = lowest_.load(std::memory_order_relaxed);
    return key_of(handle) - lowest <= highest_.load(std::memory_order_relaxed) - lowest;
  }

  /// Makes may_have() false for every handle, for the end of MPI: whoever asks it first then leaves
  /// all to MPI. Entries stay until their handles are freed. O(1).
  void close() {
    const std::lock_guard lock(writers_);
    highest_ = 0;
    lowest_ = ~Key{0};
  }

  /// Of this handle, or nullptr. Lives until that is freed. O(1), takes no lock.
  T* find(Handle handle) const { return find_key(key_of(handle)); }

  /// Keeps `value`, unless another thread was faster, until the handle is freed. Throws MpiError,
  /// and EnvironmentError once MPI_Finalize has begun.
  T* insert(Handle handle, std::unique_ptr<T> value) {
    const auto key = key_of(handle);
    const auto [entry, is_new] = insert_key(key, std::move(value));
    if (!is_new) return entry;
    try {
      if constexpr (of == HandlesOf::datatypes)
        attach_to_type(handle);
      else
        attach_to_communicator(handle);
    } catch (...) {
      erase(key);  // nobody would drop it
      throw;
    }
    return entry;
  }

 private:
  // Open addressing. A key never moves within its slots, and slots that grew too full are replaced
  // as a whole but kept, since somebody may be reading them.
  static constexpr Key kEmpty = ~Key{0};
  static constexpr std::size_t kFirstSize = 256;

  struct Slot {
    std::atomic<Key> key{kEmpty};
    std::atomic<T*> entry{nullptr};
  };
  struct Slots {
    explicit Slots(std::size_t size) : list(size), last(size - 1) {}
    std::vector<Slot> list;  // a power of two of them
    std::size_t last;        // index
    std::size_t next(std::size_t i) const { return (i + 1) & last; }
    std::size_t first(Key key) const {
      // Fibonacci hashing: handles differ in their middle bits.
      constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15u;
      return static_cast<std::size_t>((key * kGolden) >> 32) & last;
    }
  };

  T* find_key(Key key) const {
    const auto& slots = *slots_.load(std::memory_order_acquire);
    for (auto i = slots.first(key);; i = slots.next(i)) {
      const auto& slot = slots.list[i];
      const auto found = slot.key.load(std::memory_order_acquire);
      if (found == key) return slot.entry.load(std::memory_order_acquire);
      if (found == kEmpty) return nullptr;
    }
  }

  // The entry of the key, and whether it is this one.
  std::pair<T*, bool> insert_key(Key key, std::unique_ptr<T> value) {
    const std::lock_guard lock(writers_);
    if (auto* found = find_key(key)) return {found, false};
    if (2 * (used_ + 1) > slots_.load()->list.size()) grow();
    put(*slots_.load(), key, value.get());
    lowest_ = std::min(lowest_.load(), key);
    highest_ = std::max(highest_.load(), key);
    return {value.release(), true};
  }

  // The slot keeps its key, for the next type of this handle.
  void erase(Key key) override {
    const std::lock_guard lock(writers_);
    auto& slots = *slots_.load();
    for (auto i = slots.first(key);; i = slots.next(i)) {
      auto& slot = slots.list[i];
      if (slot.key.load() == kEmpty) return;
      if (slot.key.load() != key) continue;
      delete slot.entry.exchange(nullptr);
      return;
    }
  }

  void put(Slots& slots, Key key, T* entry) {
    auto i = slots.first(key);
    while (slots.list[i].key.load() != kEmpty && slots.list[i].key.load() != key) i = slots.next(i);
    if (slots.list[i].key.load() == kEmpty) ++used_;
    slots.list[i].entry.store(entry, std::memory_order_release);
    slots.list[i].key.store(key, std::memory_order_release);
  }

  // Twice as many slots; keys without an entry are left behind.
  void grow() {
    const auto& old = *slots_.load();
    auto bigger = std::make_unique<Slots>(2 * old.list.size());
    used_ = 0;
    for (const auto& slot : old.list)
      if (auto* entry = slot.entry.load()) put(*bigger, slot.key.load(), entry);
    slots_.store(bigger.get(), std::memory_order_release);
    all_slots_.push_back(std::move(bigger));
  }

  std::mutex writers_;
  std::vector<std::unique_ptr<Slots>> all_slots_ = [] {
    std::vector<std::unique_ptr<Slots>> first;
    first.push_back(std::make_unique<Slots>(kFirstSize));
    return first;
  }();
  std::atomic<Slots*> slots_{all_slots_.front().get()};
  std::size_t used_ = 0;  // keys in the slots
  // Of all keys so far. MPI's own handles are mostly elsewhere, which may_have() tells without a
  // probe.
  std::atomic<Key> lowest_{~Key{0}}, highest_{0};
};

}  // namespace halocline::dtype
