// SPDX-License-Identifier: BSD-3-Clause
// Copies the short runs of structs, and runs at displacements. Internal to the sources here.
#pragma once

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

// Finds the widths of the atoms, which are in descending order: the next atom is at most kMost
// bytes wide.
template <CopyDirection kDirection, std::size_t kMost, class... Width>
void choose_widths(const detail::AtomGroup& group, const LoopLevel& level, Address memory,
                   Address packed, Width... width) {
  constexpr auto kChosen = sizeof...(Width);
  if constexpr (kChosen > 0) {
    if (kChosen == group.size)
      return copy_group_row<kDirection>(group, level, memory, packed,
                                        std::make_index_sequence<kChosen>(), width...);
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
