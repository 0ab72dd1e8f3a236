// SPDX-License-Identifier: BSD-3-Clause
// Defines layouts that several groups measure, each with its loop by hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dtype/bench/harness.hpp"

namespace halocline::dtype::bench {

inline std::vector<std::int64_t> scaled(const std::vector<int>& list, std::int64_t factor) {
  std::vector<std::int64_t> out(list.begin(), list.end());
  for (auto& value : out) value *= factor;
  return out;
}

/// Returns an MPI_Type_indexed with a block of one element per entry of the list.
inline TypeExprPtr single_elements(const std::vector<int>& list, std::string_view element) {
  return type(Indexed{std::vector<std::int64_t>(list.size(), 1), scaled(list, 1), named(element)});
}

/// Returns an MPI_Type_create_indexed_block: for each entry, the `width` elements from width *
/// entry on.
inline TypeExprPtr blocks_of(std::int64_t width, const std::vector<int>& list,
                             std::string_view element) {
  return type(IndexedBlock{width, scaled(list, width), named(element)});
}

/// Moves the elements of a list, with the loop that a programmer writes. Returns the end of the
/// packed bytes.
template <int kWidth, class Move, class T>
T* move_by_index(Move move, const std::vector<int>& list, T* __restrict memory,
                 T* __restrict packed) {
  const int* __restrict index = list.data();
  const auto entries = static_cast<std::int64_t>(list.size());
  for (std::int64_t i = 0; i < entries; ++i)
    for (int k = 0; k < kWidth; ++k)
      move(memory[std::int64_t{kWidth} * index[i] + k], packed[kWidth * i + k]);
  return packed + kWidth * entries;
}

template <class T, int kWidth>
Method by_index_list(std::vector<int> list) {
  return by_hand<T>([list = std::move(list)](auto move, T* memory, T* packed) {
    move_by_index<kWidth>(move, list, memory, packed);
  });
}

/// Moves every other element.
template <class T>
Method every_other(std::int64_t n) {
  return by_hand<T>([n](auto move, T* __restrict memory, T* __restrict packed) {
    for (std::int64_t i = 0; i < n; ++i) move(memory[2 * i], packed[i]);
  });
}

/// Returns a case of every other double, as instances of a resized type. Every call of MPI_Pack has
/// another count; `total` is the sum.
inline Case changing_count(std::int64_t total) {
  std::vector<std::int64_t> counts = {total / 4, 1, total / 8, total / 64 + 3, 2, total / 3 - 1};
  for (const auto count : counts) total -= count;
  counts.push_back(total);
  const auto element = parse_type("resized(double,0,16)");
  std::vector<Part> parts;
  for (const auto count : counts) parts.push_back({element, count});
  return {
      "struct-vector-changing-count", std::move(parts),
      by_hand<double>([counts](auto move, double* __restrict memory, double* __restrict packed) {
        for (const auto count : counts) {
          for (std::int64_t i = 0; i < count; ++i) move(memory[2 * i], packed[i]);
          packed += count;
        }
      })};
}

/// Moves the columns of an N x N block, one behind the other, out of rows of kRow elements.
template <class T, int N, int kRow>
Method columns() {
  return by_hand<T>([](auto move, T* __restrict memory, T* __restrict packed) {
    for (int x = 0; x < N; ++x)
      for (int y = 0; y < N; ++y) move(memory[y * kRow + x], packed[x * N + y]);
  });
}

template <int N>
Case transpose() {
  const auto n = std::to_string(N);
  return {"transpose-" + n,
          {{parse_type("hvector(" + n + ",1,8,vector(" + n + ",1," + n + ",double))")}},
          columns<double, N, N>()};
}

struct Member {
  std::int64_t offset;
  std::size_t bytes;
};

/// Returns an array of structs with gaps. The compiler knows the members, as in an application.
template <std::int64_t kExtent, Member... kMembers>
Case struct_array(const char* name, const std::string& datatype, std::int64_t count) {
  return {
      name,
      {{parse_type("resized(" + datatype + ",0," + std::to_string(kExtent) + ")"), count}},
      by_hand<std::byte>([count](auto move, std::byte* __restrict memory,
                                 std::byte* __restrict packed) {
        for (std::int64_t i = 0; i < count; ++i, memory += kExtent)
          ((move.bytes(memory + kMembers.offset, packed, kMembers.bytes), packed += kMembers.bytes),
           ...);
      })};
}

inline Case char_double_int(std::int64_t count) {
  return struct_array<24, Member{0, 1}, Member{8, 8}, Member{16, 4}>(
      "struct-char-double-int", "struct({1,1,1},{0,8,16},{char,double,int})", count);
}
inline Case short_int_char_double(std::int64_t count) {
  return struct_array<24, Member{0, 2}, Member{4, 4}, Member{8, 1}, Member{16, 8}>(
      "struct-short-int-char-double", "struct({1,1,1,1},{0,4,8,16},{short,int,char,double})",
      count);
}
/// Returns an array of struct { double position[3]; float charge; int id; char tag[3]; }.
inline Case particle(std::int64_t count) {
  return struct_array<40, Member{0, 24}, Member{24, 4}, Member{28, 4}, Member{32, 3}>(
      "struct-particle", "struct({3,1,1,3},{0,24,28,32},{double,float,int,char})", count);
}

}  // namespace halocline::dtype::bench
