// SPDX-License-Identifier: BSD-3-Clause
// Keeps facts about datatypes and communicators, by handle, until the handles are freed.
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

#include "support/once.hpp"

namespace halocline::dtype {

/// Names the kind of a handle: in some MPIs the handles of all kinds are integers.
enum class HandlesOf { datatypes, communicators };

/// Returns a number for a handle, which is a pointer or an integer.
template <class Handle>
std::uintptr_t key_of(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>)
    return reinterpret_cast<std::uintptr_t>(handle);
  else
    return static_cast<std::uintptr_t>(handle);
}

namespace detail {

/// Is the part of a table that MPI calls. It is never destroyed: MPI may drop entries even after
/// the destruction of static objects.
class HandleTableBase {
 public:
  explicit HandleTableBase(HandlesOf of) : of_(of) {}
  HandleTableBase(const HandleTableBase&) = delete;
  HandleTableBase& operator=(const HandleTableBase&) = delete;

 protected:
  using Key = std::uintptr_t;

  ~HandleTableBase() = default;

  /// Makes MPI erase the entry when the handle is freed. Call it once for an entry: a second call
  /// would drop the entry. Does nothing for predefined types: they are never freed, and some MPIs
  /// refuse attributes on them. Throws MpiError, and EnvironmentError once MPI_Finalize has begun.
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

/// Holds one T for each handle for which insert() was called.
///
/// All operations are local, and thread-safe as far as the MPI is. Allocate a table and never free
/// it: MPI may call it until the end of the process.
template <class T, HandlesOf of = HandlesOf::datatypes>
class HandleTable final : detail::HandleTableBase {
 public:
  using Handle = std::conditional_t<of == HandlesOf::datatypes, MPI_Datatype, MPI_Comm>;

  HandleTable() : HandleTableBase(of) {}

  /// Tells if this handle may have an entry. False is certain, and is the answer for most
  /// predefined handles. O(1), takes no lock.
  bool may_have(Handle handle) const {
    const auto lowest = lowest_.load(std::memory_order_relaxed);
    return key_of(handle) - lowest <= highest_.load(std::memory_order_relaxed) - lowest;
  }

  /// Makes may_have() false for every handle. Callers that ask may_have() first then leave all to
  /// MPI, which suits MPI_Finalize. Entries stay until their handles are freed. O(1).
  void close() {
    const std::lock_guard lock(writers_);
    highest_ = 0;
    lowest_ = ~Key{0};
  }

  /// Returns the entry of this handle, or nullptr. It lives until the handle is freed. O(1), takes
  /// no lock.
  T* find(Handle handle) const { return find_key(key_of(handle)); }

  /// Keeps `value` until the handle is freed, unless another thread was faster. Returns the entry
  /// of the handle. Throws MpiError, and EnvironmentError once MPI_Finalize has begun.
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
      erase(key);  // without an attribute, nobody would drop it
      throw;
    }
    return entry;
  }

 private:
  // Open addressing. A key never moves within its slots. Slots that are too full are replaced as a
  // whole; the old ones are kept, since another thread may be reading them.
  static constexpr Key kEmpty = ~Key{0};
  static constexpr std::size_t kFirstSize = 256;

  struct Slot {
    std::atomic<Key> key{kEmpty};
    std::atomic<T*> entry{nullptr};
  };
  struct Slots {
    explicit Slots(std::size_t size) : list(size), last(size - 1) {}
    std::vector<Slot> list;  // its size is a power of two
    std::size_t last;        // index of the last slot, a bit mask
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

  // Returns the entry of the key, and true if it is `value`.
  std::pair<T*, bool> insert_key(Key key, std::unique_ptr<T> value) {
    const std::lock_guard lock(writers_);
    if (auto* found = find_key(key)) return {found, false};
    if (2 * (used_ + 1) > slots_.load()->list.size()) grow();
    put(*slots_.load(), key, value.get());
    lowest_ = std::min(lowest_.load(), key);
    highest_ = std::max(highest_.load(), key);
    return {value.release(), true};
  }

  // The slot keeps its key, for the next type with this handle.
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

  // Doubles the number of slots. Keys without an entry are left out.
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
  // Bounds of all keys so far. Most predefined handles lie outside: may_have() needs no probe for
  // them.
  std::atomic<Key> lowest_{~Key{0}}, highest_{0};
};

}  // namespace halocline::dtype
