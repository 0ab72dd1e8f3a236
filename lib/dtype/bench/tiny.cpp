// SPDX-License-Identifier: BSD-3-Clause
// Measures calls below 4 KiB, which are dominated by the overhead of a call.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness.hpp"
#include "layouts.hpp"

namespace halocline::dtype::bench {

namespace {

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

std::vector<Case> tiny(const Options&) {
  return {contiguous_doubles<1>(),
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
          transpose<16>()};
}

}  // namespace halocline::dtype::bench
