// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/pack/plan_table.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "dtype/support/mpi_check.hpp"

namespace halocline::dtype {

namespace {

using Key = std::uintptr_t;
using Entry = Result<PackPlan>;

// MPI's handles are pointers or integers.
template <class Handle>
Key key_of(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>)
    return reinterpret_cast<Key>(handle);
  else
    return static_cast<Key>(handle);
}

// Open addressing. Readers take no lock: a key never moves within its slots, and slots that grew
// too full are replaced as a whole but kept, since somebody may be reading them.
class Table {
 public:
  const Entry* find(Key key) const {
    const auto& slots = *slots_.load(std::memory_order_acquire);
    for (auto i = slots.first(key);; i = slots.next(i)) {
      const auto& slot = slots.list[i];
      const auto found = slot.key.load(std::memory_order_acquire);
      if (found == key) return slot.entry.load(std::memory_order_acquire);
      if (found == kEmpty) return nullptr;
    }
  }

  // The entry of the key, and whether it is this one or that of a thread that was faster.
  std::pair<const Entry*, bool> insert(Key key, Entry entry) {
    const std::lock_guard lock(writers_);
    if (const auto* found = find(key)) return {found, false};
    if (2 * (used_ + 1) > slots_.load()->list.size()) grow();
    auto* const kept = new Entry(std::move(entry));
    put(*slots_.load(), key, kept);
    return {kept, true};
  }

  // The slot keeps its key, for the next type of this handle.
  void erase(Key key) {
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

 private:
  static constexpr Key kEmpty = ~Key{0};

  struct Slot {
    std::atomic<Key> key{kEmpty};
    std::atomic<const Entry*> entry{nullptr};
  };
  struct Slots {
    explicit Slots(std::size_t size) : list(size) {}
    std::vector<Slot> list;  // a power of two of them
    std::size_t next(std::size_t i) const { return (i + 1) & (list.size() - 1); }
    std::size_t first(Key key) const {
      // Fibonacci hashing: handles differ in their middle bits.
      constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15u;
      return static_cast<std::size_t>((key * kGolden) >> 32) & (list.size() - 1);
    }
  };

  void put(Slots& slots, Key key, const Entry* entry) {
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
      if (const auto* entry = slot.entry.load()) put(*bigger, slot.key.load(), entry);
    slots_.store(bigger.get(), std::memory_order_release);
    all_slots_.push_back(std::move(bigger));
  }

  static constexpr std::size_t kFirstSize = 256;
  std::mutex writers_;
  std::vector<std::unique_ptr<Slots>> all_slots_ = [] {
    std::vector<std::unique_ptr<Slots>> first;
    first.push_back(std::make_unique<Slots>(kFirstSize));
    return first;
  }();
  std::atomic<Slots*> slots_{all_slots_.front().get()};
  std::size_t used_ = 0;
};

// Never destroyed: MPI calls drop() when it likes, even after the statics are gone.
Table& table() {
  static auto* const the_table = new Table;
  return *the_table;
}

extern "C" int halocline_drop_plan(MPI_Datatype handle, int, void*, void*) {
  table().erase(key_of(handle));
  return MPI_SUCCESS;
}

extern "C" int halocline_free_keyval(MPI_Comm, int, void* key, void*) {
  return MPI_Type_free_keyval(static_cast<int*>(key));
}

int make_keyval() {
  int key = MPI_KEYVAL_INVALID;
  HALOCLINE_MPI(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, halocline_drop_plan, &key, nullptr));
  return key;
}

int keyval() {
  static const int value = [] {
    // MPI_Finalize first deletes the attributes of MPI_COMM_SELF: then ours goes, too.
    int at_finalize = MPI_KEYVAL_INVALID;
    HALOCLINE_MPI(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, halocline_free_keyval, &at_finalize,
                                         nullptr));
    static int key = make_keyval();
    HALOCLINE_MPI(MPI_Comm_set_attr(MPI_COMM_SELF, at_finalize, &key));
    HALOCLINE_MPI(MPI_Comm_free_keyval(&at_finalize));
    return key;
  }();
  return value;
}

bool is_predefined(MPI_Datatype handle) {
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  HALOCLINE_MPI(MPI_Type_get_envelope(handle, &integers, &addresses, &types, &combiner));
  return combiner == MPI_COMBINER_NAMED;
}

}  // namespace

const Result<PackPlan>& cached_plan(MPI_Datatype handle) {
  const auto key = key_of(handle);
  if (const auto* found = table().find(key)) return *found;
  const auto [entry, is_new] = table().insert(key, make_plan(handle));
  // Set once: setting it again would drop the entry. Predefined types are never freed, and some
  // MPIs take no attribute on them.
  if (is_new && !is_predefined(handle)) {
    try {
      HALOCLINE_MPI(MPI_Type_set_attr(handle, keyval(), nullptr));
    } catch (const MpiError&) {
      table().erase(key);  // nobody would drop it
      throw;
    }
  }
  return *entry;
}

}  // namespace halocline::dtype
