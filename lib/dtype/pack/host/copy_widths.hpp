// SPDX-License-Identifier: BSD-3-Clause
// Copies one run, with code for its width: here the bytes move. Internal to the sources here.
//
// with_width() turns the bytes of a run into a type, the width. Fixed is a constant width, Joined
// two chunks that overlap. Wide is a loop of chunks, Aligned a loop of aligned stores, and Long a
// call of memcpy. Overlapping and FourChunks are for the runs of a list, whose widths differ from
// run to run. copy_run() copies by a width.
//
// Best peer: Open MPI calls memcpy for every block, and MPICH copies one basic element at a time.
// Here the width of a run is a constant of the loop that copies it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "dtype/pack/host/nest.hpp"
#include "dtype/pack/pack_plan.hpp"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace halocline::dtype::host {

using detail::kLineBytes;

// Names the type that moves kBytes bytes through one register. Vectors are filled and written by
// reference: without AVX, vectors of 32 bytes have no ABI for passing by value.
template <std::size_t kBytes>
struct ChunkOf {
  using Type [[gnu::vector_size(kBytes)]] = std::uint64_t;
};
template <>
struct ChunkOf<1> {
  using Type = std::uint8_t;
};
template <>
struct ChunkOf<2> {
  using Type = std::uint16_t;
};
template <>
struct ChunkOf<4> {
  using Type = std::uint32_t;
};
template <>
struct ChunkOf<8> {
  using Type = std::uint64_t;
};
inline constexpr std::size_t kMaxChunk = 32;

template <class Chunk>
void load(Chunk& value, Address address) {
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
}
template <class Chunk>
void store(Address address, const Chunk& value) {
  std::memcpy(reinterpret_cast<void*>(address), &value, sizeof value);
}
// Returns a chunk by value: only for chunks that have an ABI.
template <class Chunk>
Chunk loaded(Address address) {
  Chunk chunk;
  load(chunk, address);
  return chunk;
}

// Holds kBytes bytes in as few chunks as possible.
template <std::size_t kBytes>
struct Chunks {
  static constexpr auto kFirst = std::bit_floor(std::min(kBytes, kMaxChunk));
  typename ChunkOf<kFirst>::Type first;
  Chunks<kBytes - kFirst> others;

  void load_from(Address from) {
    load(first, from);
    others.load_from(from + kFirst);
  }
  void store_to(Address to) const {
    store(to, first);
    others.store_to(to + kFirst);
  }
};
template <>
struct Chunks<0> {
  void load_from(Address) {}
  void store_to(Address) const {}
};

// Widths of a run: the number of bytes (kBytes, if the compiler knows it), and a copy that touches
// no other byte. OfTiles is the width that copies such runs in tiles. It is void for runs of a
// cache line or more, which never run in tiles.
template <std::size_t kWidth>
struct Fixed {
  static constexpr bool kRunsInTiles = std::less<>()(kWidth, kLineBytes);
  using OfTiles = std::conditional_t<kRunsInTiles, Fixed, void>;
  static constexpr std::int64_t kBytes = kWidth;
  static constexpr std::int64_t size() { return kBytes; }
  // All loads come before the first store: for the compiler, the store may change the memory of a
  // load.
  static void copy(Address to, Address from) {
    Chunks<kWidth> chunks;
    chunks.load_from(from);
    chunks.store_to(to);
  }
};
// Copies kHead bytes and at most kTail more, as two chunks that may overlap.
template <std::size_t kHead, std::size_t kTail>
struct Joined {
  using OfTiles = Joined<kHead, kHead>;  // one for all tails: runs of odd widths are rare in tiles
  static constexpr std::int64_t kBytes = 0;
  std::int64_t bytes;
  std::int64_t size() const { return bytes; }
  void copy(Address to, Address from) const {
    const auto at = static_cast<Address>(bytes) - kTail;
    typename ChunkOf<kHead>::Type head;
    typename ChunkOf<kTail>::Type tail;
    load(head, from);
    load(tail, from + at);
    store(to, head);
    store(to + at, tail);
  }
};
// Copies 32 bytes or more, four chunks at a time. The last chunk may overlap the one before.
struct Wide {
  using OfTiles = void;
  static constexpr std::int64_t kBytes = 0;
  std::int64_t bytes;
  std::int64_t size() const { return bytes; }
  void copy(Address to, Address from) const {
    auto left = static_cast<Address>(bytes);
    for (; left >= 4 * kMaxChunk; left -= 4 * kMaxChunk) {
      Fixed<4 * kMaxChunk>::copy(to, from);
      from += 4 * kMaxChunk, to += 4 * kMaxChunk;
    }
    for (; left >= kMaxChunk; left -= kMaxChunk, from += kMaxChunk, to += kMaxChunk)
      Fixed<kMaxChunk>::copy(to, from);
    if (left > 0) Fixed<kMaxChunk>::copy(to + left - kMaxChunk, from + left - kMaxChunk);
  }
};
// Copies 32 bytes or more, one chunk at a time. The last chunk may overlap the one before.
struct Overlapping {
  static constexpr std::int64_t kBytes = 0;
  std::int64_t bytes;
  std::int64_t size() const { return bytes; }
  void copy(Address to, Address from) const {
    const auto last = from + static_cast<Address>(bytes) - kMaxChunk;
    const auto last_to = to + static_cast<Address>(bytes) - kMaxChunk;
    for (; from < last; from += kMaxChunk, to += kMaxChunk) Fixed<kMaxChunk>::copy(to, from);
    Fixed<kMaxChunk>::copy(last_to, last);
  }
};
// Copies 16 to 64 bytes as four chunks that may overlap, without a branch.
struct FourChunks {
  std::int64_t bytes;
  void copy(Address to, Address from) const {
    using Chunk = Fixed<16>;
    const auto last = static_cast<Address>(bytes) - 16;
    const auto second = std::min<Address>(16, last), third = std::min<Address>(32, last);
    Chunk::copy(to, from);
    Chunk::copy(to + second, from + second);
    Chunk::copy(to + third, from + third);
    Chunk::copy(to + last, from + last);
  }
};
// From this width on, stores must be aligned: those that cross a cache line take twice as long.
inline constexpr std::int64_t kAlignedFrom = 512;
// From this width on, the C library's memcpy is as fast in a loop over runs. Below it, a call costs
// more than it saves, if the compiler may use AVX.
#ifdef __AVX__
inline constexpr std::int64_t kMemcpyFrom = 4096;
#else
inline constexpr std::int64_t kMemcpyFrom = kAlignedFrom;
#endif
// Copies kAlignedFrom bytes or more. The stores between the first 32 and the last 128 bytes are
// aligned. The end is read first: rows are often far apart, and two of their lines are then on
// their way at once.
struct Aligned {
  using OfTiles = void;
  static constexpr std::int64_t kBytes = 0;
  std::int64_t bytes;
  std::int64_t size() const { return bytes; }
  void copy(Address to, Address from) const {
    constexpr Address kStep = 4 * kMaxChunk;
    const auto end = static_cast<Address>(bytes) - kStep;
    Chunks<kStep> last;
    last.load_from(from + end);
    Fixed<kMaxChunk>::copy(to, from);
    for (auto at = kMaxChunk - to % kMaxChunk; at < end; at += kStep)
      Fixed<kStep>::copy(to + at, from + at);
    last.store_to(to + end);
  }
};
struct Long {
  using OfTiles = void;
  static constexpr std::int64_t kBytes = 0;
  std::int64_t bytes;
  std::int64_t size() const { return bytes; }
  void copy(Address to, Address from) const {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from),
                static_cast<std::size_t>(bytes));
  }
};
// Tells if the processor has stores past the caches, and from which width on they gain.
#ifdef __SSE2__
inline constexpr bool kCanStream = true;
#else
inline constexpr bool kCanStream = false;
#endif
inline constexpr std::int64_t kStreamedFrom = 4096;
// Copies kStreamedFrom bytes or more. All lines but the first and the last are stored past the
// caches: they are not read before they are written.
struct Streamed {
  using OfTiles = void;
  static constexpr std::int64_t kBytes = 0;
  std::int64_t bytes;
  std::int64_t size() const { return bytes; }
  void copy(Address to, Address from) const { copy(to, from, from); }
  // `next` is the run after this one. It is fetched meanwhile: the prefetchers of the hardware end
  // with each run.
  void copy(Address to, Address from, Address next) const {
    constexpr Address kLine = kLineBytes;
    const auto end = static_cast<Address>(bytes) - kLine;
    auto at = kLine - to % kLine;
    Fixed<kLine>::copy(to, from);
    for (; at < end; at += kLine) {
      __builtin_prefetch(reinterpret_cast<const void*>(next + at), 0, 2);
      stream_line(to + at, from + at);
    }
    Fixed<kLine>::copy(to + end, from + end);
  }

 private:
  static void stream_line(Address to, Address from) {
#ifdef __SSE2__
    __m128i parts[kLineBytes / 16];
    for (auto& part : parts) {
      load(part, from);
      from += 16;
    }
    for (const auto& part : parts) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to), part);
      to += 16;
    }
#else
    Fixed<kLineBytes>::copy(to, from);
#endif
  }
};

// Calls function(width) for a run of kHead to 2 * kHead bytes, with the shortest tail that
// suffices.
template <std::size_t kHead, std::size_t kTail = 1, class Function>
void with_tail(std::int64_t run, const Function& function) {
  if constexpr (kTail < kHead) {
    if (run > static_cast<std::int64_t>(kHead + kTail))
      return with_tail<kHead, 2 * kTail>(run, function);
  }
  function(Joined<kHead, kTail>{run});
}

template <class Function>
void with_width(std::int64_t run, const Function& function) {
  switch (run) {
    case 1:
      return function(Fixed<1>{});
    case 2:
      return function(Fixed<2>{});
    case 4:
      return function(Fixed<4>{});
    case 8:
      return function(Fixed<8>{});
    case 12:
      return function(Fixed<12>{});
    case 16:
      return function(Fixed<16>{});
    case 24:
      return function(Fixed<24>{});
    case 32:
      return function(Fixed<32>{});
    case 40:
      return function(Fixed<40>{});
    case 48:
      return function(Fixed<48>{});
    case 64:
      return function(Fixed<64>{});
    default:
      break;
  }
  if (run < 4) return function(Joined<2, 1>{run});
  if (run < 8) return with_tail<4>(run, function);
  if (run < 16) return with_tail<8>(run, function);
  if (run < 32) return with_tail<16>(run, function);
  if (run < 64) return with_tail<32>(run, function);
  if (run < kAlignedFrom) return function(Wide{run});
  if (run < kMemcpyFrom) return function(Aligned{run});
  return function(Long{run});
}

template <CopyDirection kDirection, class Width>
[[gnu::always_inline]] inline void copy_run(Width width, Address memory, Address packed) {
  if constexpr (kDirection == CopyDirection::pack)
    width.copy(packed, memory);
  else
    width.copy(memory, packed);
}

template <class Width>
Width width_of(std::int64_t run) {
  if constexpr (Width::kBytes > 0)
    return {};
  else
    return {run};
}

/// Copies consecutive bytes.
template <CopyDirection kDirection>
void copy_bytes(std::int64_t bytes, Address memory, Address packed) {
  copy_run<kDirection>(Long{bytes}, memory, packed);
}

// Copies a run whose width differs from that of the run before: few branches, since none can be
// predicted.
template <CopyDirection kDirection>
[[gnu::always_inline]] inline void copy_some(std::int64_t bytes, Address memory, Address packed) {
  if (bytes >= kMemcpyFrom) return copy_run<kDirection>(Long{bytes}, memory, packed);
  if (bytes >= kAlignedFrom) return copy_run<kDirection>(Aligned{bytes}, memory, packed);
  if (bytes > 64) return copy_run<kDirection>(Overlapping{bytes}, memory, packed);
  if (bytes >= 16) return copy_run<kDirection>(FourChunks{bytes}, memory, packed);
  if (bytes >= 8) return copy_run<kDirection>(Joined<8, 8>{bytes}, memory, packed);
  if (bytes >= 4) return copy_run<kDirection>(Joined<4, 4>{bytes}, memory, packed);
  if (bytes >= 2) return copy_run<kDirection>(Joined<2, 2>{bytes}, memory, packed);
  if (bytes == 1) copy_run<kDirection>(Fixed<1>{}, memory, packed);
}

}  // namespace halocline::dtype::host
