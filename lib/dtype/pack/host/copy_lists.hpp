// SPDX-License-Identifier: BSD-3-Clause
// Copies the short runs of structs, and runs at displacements. Internal to the sources here.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "dtype/pack/host/copy_rows.hpp"

namespace halocline::dtype::host {

// ---- Groups: stores that follow each other into one cache line cost less than into many ----

// Copies all atoms of a group in one loop that knows their widths.
template <CopyDirection kDirection, std::size_t... kAtom, class... Width>
void copy_group_row(const detail::AtomGroup& group, const LoopLevel& level, Address memory,
                    Address packed, std::index_sequence<kAtom...>, Width... width) {
  const Address m_at[] = {static_cast<Address>(group.atoms[kAtom].displacement)...};
  const Address p_at[] = {static_cast<Address>(group.atoms[kAtom].packed_offset)...};
  const auto s = static_cast<Address>(level.stride), q = static_cast<Address>(level.packed_stride);
#pragma GCC unroll 4
  for (auto count = level.count; count > 0; --count, memory += s, packed += q)
    (copy_run<kDirection>(width, memory + m_at[kAtom], packed + p_at[kAtom]), ...);
}

// Tells if the first atom has eight bytes, and all others are packed right before it, in at most
// eight bytes.
inline bool are_before_first(const detail::AtomGroup& group) {
  const auto& first = group.atoms[0];
  std::int64_t bytes = 0;
  for (std::size_t i = 1; i < group.size; ++i) bytes += group.atoms[i].bytes;
  const auto begin = first.packed_offset - bytes;
  for (std::size_t i = 1; i < group.size; ++i)
    if (group.atoms[i].packed_offset < begin || group.atoms[i].packed_offset > first.packed_offset)
      return false;
  return first.bytes == 8 && bytes <= 8;
}

// Packs a group of atoms that are_before_first(): two stores of eight bytes, of which the second
// may overlap the first. The number of stores costs more than the shifts.
template <std::size_t... kAtom, class... Width>
void pack_joined_row(const detail::AtomGroup& group, const LoopLevel& level, Address memory,
                     Address packed, std::index_sequence<kAtom...>, Width...) {
  const auto at = [&](std::size_t i) { return static_cast<Address>(group.atoms[i].displacement); };
  const Address m_at[] = {at(kAtom + 1)...};
  std::int64_t bytes = (... + Width::kBytes);
  const auto first_at = static_cast<Address>(group.atoms[0].packed_offset),
             p_at = first_at - static_cast<Address>(bytes);
  const auto bits = [&](std::size_t i) {
    return 8 * (static_cast<Address>(group.atoms[i].packed_offset) - p_at);
  };
  const Address shift[] = {bits(kAtom + 1)...};
  const auto s = static_cast<Address>(level.stride), q = static_cast<Address>(level.packed_stride),
             first = at(0);
#pragma GCC unroll 4
  for (auto count = level.count; count > 0; --count, memory += s, packed += q) {
    const auto joined =
        (... | (std::uint64_t{loaded<typename ChunkOf<Width::kBytes>::Type>(memory + m_at[kAtom])}
                << shift[kAtom]));
    const auto last = loaded<std::uint64_t>(memory + first);
    store(packed + p_at, joined);
    store(packed + first_at, last);
  }
}

template <CopyDirection kDirection, class First, class... Width>
void with_widths(const detail::AtomGroup& group, const LoopLevel& level, Address memory,
                 Address packed, First first, Width... width) {
  constexpr bool kMayJoin = kDirection == CopyDirection::pack && sizeof...(Width) > 1 &&
                            First::kBytes == 8 && (... && (Width::kBytes < 8)) &&
                            std::endian::native == std::endian::little;
  if constexpr (kMayJoin) {
    if (are_before_first(group))
      return pack_joined_row(group, level, memory, packed, std::index_sequence_for<Width...>(),
                             width...);
  }
  copy_group_row<kDirection>(group, level, memory, packed,
                             std::make_index_sequence<1 + sizeof...(Width)>(), first, width...);
}

// Finds the widths of the atoms, which are in descending order: the next atom is at most kMost
// bytes wide.
template <CopyDirection kDirection, std::size_t kMost, class... Width>
void choose_widths(const detail::AtomGroup& group, const LoopLevel& level, Address memory,
                   Address packed, Width... width) {
  constexpr auto kChosen = sizeof...(Width);
  if constexpr (kChosen > 0) {
    if (kChosen == group.size)
      return with_widths<kDirection>(group, level, memory, packed, width...);
  }
  if constexpr (kChosen < detail::AtomGroup::kMaxSize) {
    if (group.atoms[kChosen].bytes == kMost)
      return choose_widths<kDirection, kMost>(group, level, memory, packed, width...,
                                              Fixed<kMost>{});
    if constexpr (kMost > 1)
      return choose_widths<kDirection, kMost / 2>(group, level, memory, packed, width...);
  }
}

/// Copies every atom of the group level.count times. Copies are the strides of the level apart.
template <CopyDirection kDirection>
void copy_group(const detail::AtomGroup& group, const LoopLevel& level, Address memory,
                Address packed) {
  choose_widths<kDirection, static_cast<std::size_t>(detail::Atom::kMaxBytes)>(group, level, memory,
                                                                               packed);
}

// ---- Lists ----

/// Copies runs of `run` bytes at memory + displacements[i] from or to consecutive packed places.
template <CopyDirection kDirection, class Displacement>
void copy_blocks(std::int64_t run, std::span<const Displacement> displacements, Address memory,
                 Address packed) {
  with_width(run, [&](auto width) {
    using B = Batch<kDirection, decltype(width)>;
    const auto m = memory;  // in a register: for the compiler, stores might change `memory`
    const auto* at = displacements.data();
    const auto* const end = at + displacements.size();
    auto p = packed;
    const auto memory_of = [&](std::size_t i) {
      return m + static_cast<Address>(std::int64_t{at[i]});
    };
    if constexpr (B::kRuns > 0)
      for (; end - at >= B::kRuns; at += B::kRuns) {
        B::copy(memory_of, p);
        p += static_cast<Address>(B::kRuns * width.size());
      }
#pragma GCC unroll 4
    for (; at != end; ++at) {
      copy_run<kDirection>(width, memory_of(0), p);
      p += static_cast<Address>(width.size());
    }
  });
}

/// Describes a run: its displacement from the begin of its list, and its bytes, which may be 0.
struct RunAt {
  std::int64_t displacement, bytes;
};

/// Copies `count` runs, each described by next(), from or to consecutive packed places.
template <CopyDirection kDirection, class Next>
void copy_runs(std::int64_t count, Next next, Address memory, Address packed) {
  for (; count > 0; --count) {
    const RunAt run = next();
    copy_some<kDirection>(run.bytes, memory + static_cast<Address>(run.displacement), packed);
    packed += static_cast<Address>(run.bytes);
  }
}

}  // namespace halocline::dtype::host
