// SPDX-License-Identifier: BSD-3-Clause
// Measures [RMG03] Table 1: all 16 rows. Where text and table of the paper disagree, the rows that
// the text means are added (errata D.2). Then come packs below 4 KiB, which are dominated by the
// overhead of a call.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dtype/bench/harness.hpp"
#include "dtype/bench/layouts.hpp"

namespace halocline::dtype::bench {

namespace {

template <class T>
constexpr const char* kName = "double";
template <>
constexpr const char* kName<float> = "float";

template <class T>
std::string with_type(const std::string& before, const std::string& after = ")") {
  return before + kName<T> + after;
}

// Two ints, 64 chars, two doubles and a float, packed: 92 bytes.
Case struct_array(std::int64_t count) {
  const auto packed_struct =
      parse_type("resized(struct({2,64,2,1},{0,8,72,88},{int,char,double,float}),0,92)");
  return {
      "struct-array",
      {{packed_struct, count}},
      by_hand<std::byte>([bytes = static_cast<std::size_t>(92 * count)](
                             auto move, std::byte* __restrict memory,
                             std::byte* __restrict packed) { move.bytes(memory, packed, bytes); })};
}

// Offsets 0, 2, 3, 5 and 8 of every ten (errata D.1).
template <class T>
Case indexed(std::int64_t blocks) {
  constexpr std::array kPattern = {0, 2, 3, 5, 8};
  std::vector<int> offsets;
  for (std::int64_t i = 0; i < blocks; ++i)
    offsets.push_back(static_cast<int>(i / 5 * 10) + kPattern[static_cast<std::size_t>(i % 5)]);
  return {std::string("indexed-") + kName<T>,
          {{single_elements(offsets, kName<T>)}},
          by_index_list<T, 1>(offsets)};
}

// A face of an N^3 cube, as extents (z, y, x) of which one is 1.
template <class T, int N, int NZ, int NY, int NX>
Case face(const char* name) {
  const auto list = [](int z, int y, int x) {
    return "{" + std::to_string(z) + "," + std::to_string(y) + "," + std::to_string(x) + "},";
  };
  return {
      std::string("3d-") + name + "-" + kName<T>,
      {{parse_type(with_type<T>("subarray(C," + list(N, N, N) + list(NZ, NY, NX) + "{0,0,0},"))}},
      by_hand<T>([](auto move, T* __restrict memory, T* __restrict packed) {
        for (int z = 0; z < NZ; ++z)
          for (int y = 0; y < NY; ++y)
            for (int x = 0; x < NX; ++x)
              move(memory[(z * N + y) * N + x], packed[(z * NY + y) * NX + x]);
      })};
}

// FLASH: blocks of 8^3 elements with 4 guard cells around them. Each element has 24 variables,
// which are interleaved in memory and one after the other in the checkpoint.
Case flash(int blocks) {
  constexpr int kVariables = 24, kCells = 8, kGuard = 4, kSide = kCells + 2 * kGuard;
  const auto n = std::to_string(blocks);
  const auto one_variable =
      "subarray(C,{" + n + ",16,16,16},{" + n + ",8,8,8},{0,4,4,4},resized(double,0,192))";
  return {
      "flash-io",
      {{parse_type("hvector(24,1,8," + one_variable + ")")}},
      by_hand<double>([blocks](auto move, double* __restrict memory, double* __restrict packed) {
        for (int v = 0; v < kVariables; ++v)
          for (int b = 0; b < blocks; ++b)
            for (int z = kGuard; z < kGuard + kCells; ++z)
              for (int y = kGuard; y < kGuard + kCells; ++y)
                for (int x = kGuard; x < kGuard + kCells; ++x)
                  move(memory[(((b * kSide + z) * kSide + y) * kSide + x) * kVariables + v],
                       *packed++);
      })};
}

template <class T>
void add_dense_and_strided(std::vector<Case>& cases, std::int64_t n) {
  const auto count = std::to_string(n);
  cases.push_back({std::string("contig-") + kName<T>,
                   {{parse_type(with_type<T>("contiguous(" + count + ","))}},
                   by_hand<T>([n](auto move, T* __restrict memory, T* __restrict packed) {
                     move.bytes(memory, packed, static_cast<std::size_t>(n) * sizeof(T));
                   })});
  cases.push_back({std::string("vector-") + kName<T>,
                   {{parse_type(with_type<T>("vector(" + count + ",1,2,"))}},
                   every_other<T>(n)});
  const auto bytes = std::to_string(2 * sizeof(T));
  cases.push_back({std::string("struct-vector-") + kName<T>,
                   {{parse_type(with_type<T>("resized(", ",0," + bytes + ")")), n}},
                   every_other<T>(n)});
}

template <class T>
void add_indexed(std::vector<Case>& cases, std::int64_t blocks) {
  cases.push_back(indexed<T>(blocks));
  cases.push_back(indexed<T>(2 * blocks));
  cases.back().name += "-2x";
}

template <class T, int N>
void add_faces(std::vector<Case>& cases) {
  cases.push_back(face<T, N, 1, N, N>("xy"));
  cases.push_back(face<T, N, N, 1, N>("xz"));
  cases.push_back(face<T, N, N, N, 1>("yz"));
}

// ---- Packs below 4 KiB ----

template <int N>
Case contiguous_doubles() {
  const auto n = std::to_string(N);
  return {"contig-" + n,
          {{parse_type("contiguous(" + n + ",double)")}},
          by_hand<double>([](auto move, double* memory, double* packed) {
            move.bytes(memory, packed, N * sizeof(double));
          })};
}

template <int N>
Case vector_of_doubles() {
  const auto n = std::to_string(N);
  return {"vector-" + n, {{parse_type("vector(" + n + ",1,2,double)")}}, every_other<double>(N)};
}

// Packs NZ x NY x NX doubles out of an array with kSide doubles along each axis.
template <int NZ, int NY, int NX, int kSide>
Case box() {
  const auto extents = std::to_string(NZ) + "," + std::to_string(NY) + "," + std::to_string(NX);
  const auto side = std::to_string(kSide);
  auto name = "box-" + extents + "-of-" + side;
  for (auto& c : name)
    if (c == ',') c = 'x';
  return {name,
          {{parse_type("subarray(C,{" + side + "," + side + "," + side + "},{" + extents +
                       "},{3,3,3},double)")}},
          by_hand<double>([](auto move, double* __restrict memory, double* __restrict packed) {
            memory += (3 * kSide + 3) * kSide + 3;
            for (int z = 0; z < NZ; ++z)
              for (int y = 0; y < NY; ++y)
                for (int x = 0; x < NX; ++x)
                  move(memory[(z * kSide + y) * kSide + x], packed[(z * NY + y) * NX + x]);
          })};
}

Case index_list(int entries) {
  std::vector<int> list;
  for (int i = 0; i < entries; ++i) list.push_back(3 * i + i * i % 3);
  return {"index-list-" + std::to_string(entries),
          {{blocks_of(1, list, "double")}},
          by_index_list<double, 1>(list)};
}

// Returns a case with `count` instances, with the count in its name.
Case of_count(Case (*layout)(std::int64_t), std::int64_t count) {
  auto one = layout(count);
  one.name += "-" + std::to_string(count);
  return one;
}

}  // namespace

std::vector<Case> table1(const Options& options) {
  std::vector<Case> cases;
  const auto n = options.smoke ? 4096 : 1048576;
  add_dense_and_strided<float>(cases, n);
  add_dense_and_strided<double>(cases, n);
  cases.push_back(struct_array(options.smoke ? 256 : 65536));
  add_indexed<float>(cases, n / 2);
  add_indexed<double>(cases, n / 2);
  if (options.smoke) {
    add_faces<float, 16>(cases);
    add_faces<double, 16>(cases);
  } else {
    add_faces<float, 256>(cases);
    add_faces<double, 256>(cases);
  }
  cases.push_back(flash(options.smoke ? 2 : 80));
  for (auto& one : std::vector<Case>{contiguous_doubles<1>(),
                                     contiguous_doubles<8>(),
                                     contiguous_doubles<27>(),
                                     contiguous_doubles<256>(),
                                     vector_of_doubles<4>(),
                                     vector_of_doubles<16>(),
                                     vector_of_doubles<128>(),
                                     box<3, 3, 3, 262>(),
                                     box<3, 3, 3, 12>(),
                                     box<1, 1, 27, 70>(),
                                     box<3, 3, 32, 38>(),
                                     box<3, 32, 3, 38>(),
                                     box<32, 3, 3, 38>(),
                                     index_list(8),
                                     index_list(64),
                                     of_count(char_double_int, 1),
                                     of_count(char_double_int, 16),
                                     of_count(short_int_char_double, 3),
                                     of_count(particle, 4),
                                     of_count(changing_count, 64),
                                     transpose<4>(),
                                     transpose<8>(),
                                     transpose<16>()})
    cases.push_back(std::move(one));
  return cases;
}

}  // namespace halocline::dtype::bench
