// SPDX-License-Identifier: BSD-3-Clause
// Does the work of one thread of a launch, with the same code on devices and, for tests, on the
// host. Internal to the back ends that execute tables.
//
// Best peer: the kernels of [PEA21] give each thread a row, those of yaksa an element. They find it
// by divisions of 64 bits and search index lists from the begin. Here each thread has words that
// are consecutive in the packed stream. It finds them by multiplications of 32 bits if these
// suffice, and by bisection of prefix sums.
#pragma once

#include <cstdint>
#include <cstring>

#include "dtype/pack/device/job_table.hpp"
#include "support/contract.hpp"

#ifdef __CUDACC__
#define HALOCLINE_FUNCTION __host__ __device__ inline
#else
#define HALOCLINE_FUNCTION inline
#endif
#ifdef __CUDA_ARCH__
#define HALOCLINE_ON_DEVICE 1
#else
#define HALOCLINE_ON_DEVICE 0
#endif

namespace halocline::dtype::device {

/// Holds 16 bytes that move in one access.
struct alignas(16) Word16 {
  std::uint64_t low, high;
};

template <int kLog2>
struct WordOf;
template <>
struct WordOf<0> {
  using type = std::uint8_t;
};
template <>
struct WordOf<1> {
  using type = std::uint16_t;
};
template <>
struct WordOf<2> {
  using type = std::uint32_t;
};
template <>
struct WordOf<3> {
  using type = std::uint64_t;
};
template <>
struct WordOf<4> {
  using type = Word16;
};

/// Returns `pointer`. The compiler then knows that it does not point to shared or local memory.
template <class T>
HALOCLINE_FUNCTION T* in_global_memory(T* pointer) {
#if defined(__CUDA_ARCH__)
  __builtin_assume(__isGlobal(pointer));
#endif
  return pointer;
}

template <class Word>
HALOCLINE_FUNCTION Word load(Address address) {
#if HALOCLINE_ON_DEVICE
  return *in_global_memory(reinterpret_cast<const Word*>(address));
#else
  HALOCLINE_EXPECT(address % sizeof(Word) == 0);
  Word word;
  std::memcpy(&word, reinterpret_cast<const void*>(address), sizeof(Word));
  return word;
#endif
}
template <class Word>
HALOCLINE_FUNCTION void store(Address address, const Word& word) {
#if HALOCLINE_ON_DEVICE
  *in_global_memory(reinterpret_cast<Word*>(address)) = word;
#else
  HALOCLINE_EXPECT(address % sizeof(Word) == 0);
  std::memcpy(reinterpret_cast<void*>(address), &word, sizeof(Word));
#endif
}

/// Gives access to the parts of a table.
template <class Form>
struct TableView {
  const Header* header;
  const Entry<Form>* entries;
  const Level<Form>* levels;
  const std::int64_t* slots;

  HALOCLINE_FUNCTION explicit TableView(const std::byte* table)
      : header(reinterpret_cast<const Header*>(table)),
        entries(reinterpret_cast<const Entry<Form>*>(table + 16)),
        levels(reinterpret_cast<const Level<Form>*>(table + header->levels)),
        slots(reinterpret_cast<const std::int64_t*>(table + header->slots)) {}
};
static_assert(sizeof(Header) <= 16);

/// Returns the index of the first number at(i), least <= i < most, that is greater than `value`;
/// `most` if there is none. The numbers are in ascending order.
template <class T, class At>
HALOCLINE_FUNCTION T first_above(T value, T least, T most, At at) {
  while (least < most) {
    const T middle = least + (most - least) / 2;
    if (static_cast<T>(at(middle)) > value)
      most = middle;
    else
      least = middle + 1;
  }
  return least;
}

/// Returns the displacement of an element in a loop of runs. `slots` holds the number of runs, the
/// address of their ends, and the address of their displacements.
HALOCLINE_FUNCTION std::int64_t place_in_runs(const std::int64_t* slots, std::int64_t element,
                                              std::int64_t stride) {
  const auto* ends = reinterpret_cast<const std::int64_t*>(slots[1]);
  const auto* displacements = reinterpret_cast<const std::int64_t*>(slots[2]);
  const auto run =
      first_above<std::int64_t>(element, 0, slots[0], [=](std::int64_t i) { return ends[i]; });
  return displacements[run] + (element - (run == 0 ? 0 : ends[run - 1])) * stride;
}
/// Returns the displacement of an element in a loop by a rule. `slots` holds the number of buckets,
/// the address of their ends, and first, change, start, distance, own and before of the BucketRule.
HALOCLINE_FUNCTION std::int64_t place_by_rule(const std::int64_t* slots, std::int64_t element,
                                              std::int64_t stride) {
  const auto* ends = reinterpret_cast<const std::int64_t*>(slots[1]);
  const std::int64_t first = slots[2], change = slots[3];
  const auto end_of = [=](std::int64_t i) {
    return ends != nullptr ? ends[i] : (i + 1) * first + change * (i * (i + 1) / 2);
  };
  const auto bucket = first_above<std::int64_t>(element, 0, slots[0], end_of);
  const auto begin = bucket == 0 ? 0 : end_of(bucket - 1);
  return slots[4] + bucket * slots[5] + (end_of(bucket) - begin) * slots[6] + begin * slots[7] +
         (element - begin) * stride;
}

/// Holds both addresses of a word.
struct Place {
  Address memory, packed;
};

/// Returns the place of word i of an entry with loops of any kind.
template <class Form>
HALOCLINE_FUNCTION Place place_of(const TableView<Form>& table, const Entry<Form>& entry,
                                  typename Form::Index i, const LaunchArguments& call) {
  using Index = typename Form::Index;
  std::int64_t memory = entry.displacement, packed = entry.packed_offset;
  const auto* level = table.levels + entry.first_level;
  for (int k = 0; k < entry.levels; ++k, ++level) {
    Index quotient;
    if constexpr (sizeof(Index) == 4)
      quotient = static_cast<Index>((std::uint64_t{i} * level->magic) >> level->shift);
    else
      quotient = level->magic == 0 ? 0 : i / level->count;
    const auto step = static_cast<typename Form::Offset>(i - quotient * level->count);
    i = quotient;
    packed += std::int64_t{step} * level->packed_stride;
    if (level->kind == LoopKind::strided) {
      memory += std::int64_t{step} * level->stride;
      continue;
    }
    const auto* slots = table.slots + level->slot;
    if (level->kind == LoopKind::near_table)
      memory += reinterpret_cast<const std::int32_t*>(slots[0])[step];
    else if (level->kind == LoopKind::far_table)
      memory += reinterpret_cast<const std::int64_t*>(slots[0])[step];
    else if (level->kind == LoopKind::runs)
      memory += place_in_runs(slots, step, level->stride);
    else
      memory += place_by_rule(slots, step, level->stride);
  }
  packed += static_cast<std::int64_t>(i) * entry.packed_step;
  memory += table.slots[entry.buffers + i];
  return {call.memory + static_cast<Address>(memory), call.packed + static_cast<Address>(packed)};
}

template <class Word, CopyDirection kDirection>
HALOCLINE_FUNCTION void copy_word(const Place& place) {
  if constexpr (kDirection == CopyDirection::pack)
    store(place.packed, load<Word>(place.memory));
  else
    store(place.memory, load<Word>(place.packed));
}

/// Returns the entry in [least, most] that holds word `word` of the launch.
template <class Form>
HALOCLINE_FUNCTION std::uint32_t entry_of(const TableView<Form>& table, const LaunchArguments& call,
                                          typename Form::Index word, std::uint32_t least,
                                          std::uint32_t most) {
  while (least < most) {
    const auto middle = least + (most - least) / 2;
    if (table.entries[middle].end * static_cast<typename Form::Index>(call.instances) > word)
      most = middle;
    else
      least = middle + 1;
  }
  return least;
}

/// Is a thread's part of the words [first, last) of a block: every kBlockThreads-th word.
template <class Form>
struct Share {
  using Index = typename Form::Index;
  const TableView<Form>& table;
  const LaunchArguments& call;
  Index first, last;
  std::uint32_t least, most;  ///< entries of the first and of the last word
  std::uint32_t thread;

  /// Finds the k-th word of this thread: its entry, and its number in the entry. Returns false if
  /// the thread has no such word.
  HALOCLINE_FUNCTION bool find(std::uint32_t k, std::uint32_t& entry, Index& word) const {
    const auto room = last - first;
    const auto ahead = static_cast<Index>(k * kBlockThreads + thread);
    if (k >= call.per_thread || ahead >= room) return false;
    word = first + ahead;
    entry = entry_of(table, call, word, least, most);
    if (entry > 0) word -= table.entries[entry - 1].end * static_cast<Index>(call.instances);
    return true;
  }
};

/// Copies a share that lies in one entry with loops of any kind. All loads come before all stores.
template <class Word, CopyDirection kDirection, class Form>
HALOCLINE_FUNCTION void copy_share(const Share<Form>& share) {
  Place places[kMaxBatch] = {};
  Word values[kMaxBatch] = {};
  std::uint32_t entry = 0, mine = 0;
  typename Form::Index word = 0;
  for (; mine < kMaxBatch && share.find(mine, entry, word); ++mine) {
    places[mine] = place_of(share.table, share.table.entries[entry], word, share.call);
    values[mine] =
        load<Word>(kDirection == CopyDirection::pack ? places[mine].memory : places[mine].packed);
  }
  for (std::uint32_t k = 0; k < mine; ++k)
    store(kDirection == CopyDirection::pack ? places[k].packed : places[k].memory, values[k]);
}

/// Holds an entry whose loops are all strided. It is read once for all words that a block copies of
/// it.
template <int kLevels, class Form>
class StridedEntry {
  using Index = typename Form::Index;

 public:
  HALOCLINE_FUNCTION StridedEntry(const TableView<Form>& table, const Entry<Form>& entry,
                                  const LaunchArguments& call)
      : memory_(call.memory + static_cast<Address>(entry.displacement)),
        packed_(call.packed + static_cast<Address>(entry.packed_offset)),
        packed_step_(entry.packed_step),
        buffers_(table.slots + entry.buffers) {
#if HALOCLINE_ON_DEVICE
#pragma unroll
#endif
    for (int k = 0; k < kLevels; ++k) levels_[k] = table.levels[entry.first_level + k];
  }

  /// Returns the place of word i. kLinear: the packed words follow each other without gaps.
  template <class Word, bool kLinear>
  HALOCLINE_FUNCTION Place place_of(Index i) const {
    static_assert(sizeof(Index) == 4, "no division by multiplication");
    Place place{memory_, packed_};
    if constexpr (kLinear) place.packed += Address{i} * sizeof(Word);
#if HALOCLINE_ON_DEVICE
#pragma unroll
#endif
    for (int k = 0; k < kLevels; ++k) {
      const auto& level = levels_[k];
      const auto quotient = static_cast<Index>((std::uint64_t{i} * level.magic) >> level.shift);
      const auto step = static_cast<typename Form::Offset>(i - quotient * level.count);
      i = quotient;
      place.memory += static_cast<Address>(std::int64_t{step} * level.stride);
      if constexpr (!kLinear)
        place.packed += static_cast<Address>(std::int64_t{step} * level.packed_stride);
    }
    if constexpr (!kLinear)
      place.packed += static_cast<Address>(static_cast<std::int64_t>(i) * packed_step_);
    place.memory += static_cast<Address>(buffers_[i]);
    return place;
  }

 private:
  Address memory_, packed_;
  std::int64_t packed_step_;
  const std::int64_t* buffers_;
  Level<Form> levels_[kLevels];
};

/// Copies this thread's part of `words` words of an entry, from word `first` on: every
/// kBlockThreads-th word. All loads come before all stores.
template <class Word, bool kLinear, CopyDirection kDirection, class Strided, class Index>
HALOCLINE_FUNCTION void copy_words(const Strided& entry, Index first, Index words,
                                   std::uint32_t thread) {
  Place places[kMaxBatch] = {};
  Word values[kMaxBatch] = {};
#if HALOCLINE_ON_DEVICE
#pragma unroll
#endif
  for (std::uint32_t k = 0; k < kMaxBatch; ++k) {
    const Index ahead = k * kBlockThreads + thread;
    if (ahead >= words) continue;
    places[k] = entry.template place_of<Word, kLinear>(first + ahead);
    values[k] = load<Word>(kDirection == CopyDirection::pack ? places[k].memory : places[k].packed);
  }
#if HALOCLINE_ON_DEVICE
#pragma unroll
#endif
  for (std::uint32_t k = 0; k < kMaxBatch; ++k)
    if (k * kBlockThreads + thread < words)
      store(kDirection == CopyDirection::pack ? places[k].packed : places[k].memory, values[k]);
}

/// Calls copy(Word()) with the word of 2^word_log2 bytes.
template <class Copy>
HALOCLINE_FUNCTION void with_word(int word_log2, Copy copy) {
  switch (word_log2) {
    case 0:
      return copy(WordOf<0>::type());
    case 1:
      return copy(WordOf<1>::type());
    case 2:
      return copy(WordOf<2>::type());
    case 3:
      return copy(WordOf<3>::type());
    default:
      return copy(WordOf<4>::type());
  }
}

/// Copies the words [first, last) of a block by a table of strided loops: the part of thread
/// `thread`. All threads of a block walk through the entries together, so that each entry is read
/// once.
template <int kLevels, CopyDirection kDirection, class Form>
HALOCLINE_FUNCTION void copy_strided(const TableView<Form>& table, const LaunchArguments& call,
                                     typename Form::Index first, typename Form::Index last,
                                     std::uint32_t thread) {
  using Index = typename Form::Index;
  const auto instances = static_cast<Index>(call.instances);
  auto number = entry_of(table, call, first, 0, table.header->entries - 1);
  Index begin = number == 0 ? 0 : table.entries[number - 1].end * instances;
  for (Index word = first; word < last; ++number) {
    const auto& entry = table.entries[number];
    const Index end = entry.end * instances;
    const Index stop = end < last ? end : last;
    const StridedEntry<kLevels, Form> strided(table, entry, call);
    with_word(entry.word_log2, [&](auto w) {
      using Word = decltype(w);
      if (entry.is_linear)
        copy_words<Word, true, kDirection>(strided, word - begin, stop - word, thread);
      else
        copy_words<Word, false, kDirection>(strided, word - begin, stop - word, thread);
    });
    word = stop;
    begin = end;
  }
}

/// Copies the words of thread `thread` of block `block`. kLevels is the number of strided loops of
/// each entry; 0 means loops of any kind.
template <int kLevels, CopyDirection kDirection, class Form>
HALOCLINE_FUNCTION void copy_thread(const std::byte* bytes, const LaunchArguments& call,
                                    std::uint64_t block, std::uint32_t thread) {
  using Index = typename Form::Index;
  const TableView<Form> table(bytes);
  const auto tile = call.per_thread * kBlockThreads;
  const auto first = block * tile;
  const auto last = first + tile < call.words ? first + tile : call.words;
  if constexpr (kLevels > 0) {
    copy_strided<kLevels, kDirection>(table, call, static_cast<Index>(first),
                                      static_cast<Index>(last), thread);
  } else {
    const auto entries = table.header->entries;
    const auto least = entry_of(table, call, static_cast<Index>(first), 0, entries - 1);
    const auto most = entry_of(table, call, static_cast<Index>(last - 1), least, entries - 1);
    const Share<Form> share{
        table, call, static_cast<Index>(first), static_cast<Index>(last), least, most, thread};
    if (least == most)
      return with_word(table.entries[least].word_log2,
                       [&](auto w) { copy_share<decltype(w), kDirection>(share); });
    for (std::uint32_t k = 0; k < kMaxBatch; ++k) {
      std::uint32_t entry = 0;
      Index word = 0;
      if (!share.find(k, entry, word)) return;
      const auto& found = table.entries[entry];
      const auto place = place_of(table, found, word, call);
      with_word(found.word_log2, [&](auto w) { copy_word<decltype(w), kDirection>(place); });
    }
  }
}

}  // namespace halocline::dtype::device
