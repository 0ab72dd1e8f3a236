// SPDX-License-Identifier: BSD-3-Clause
// Measures layouts that applications send: the access patterns of the DDTBench collection,
// transposes, arrays of structs with gaps, and a count that changes at every call. Also measures
// index lists, and two constructors that MPI does not have.
//
// DDTBench: Schneider, Gerstenberger, Hoefler: Micro-applications for communication data access
// patterns and MPI datatypes, EuroMPI 2012.
#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "dtype/bench/harness.hpp"
#include "dtype/bench/layouts.hpp"

namespace halocline::dtype::bench {

namespace {

template <class... Numbers>
std::string list(Numbers... numbers) {
  std::string text;
  ((text += (text.empty() ? "{" : ",") + std::to_string(numbers)), ...);
  return text + "}";
}

// NAS LU: the five values of each point of a line of cells. Along y, the points are a row apart.
Case lu_x(int points) {
  return {"nas-lu-x",
          {{parse_type("contiguous(" + std::to_string(5 * points) + ",double)")}},
          by_hand<double>([points](auto move, double* memory, double* packed) {
            move.bytes(memory, packed, static_cast<std::size_t>(points) * 5 * sizeof(double));
          })};
}
Case lu_y(int points) {
  constexpr int kRow = 64 + 2;
  return {
      "nas-lu-y",
      {{parse_type("vector(" + std::to_string(points) + ",1," + std::to_string(kRow) +
                   ",contiguous(5,double))")}},
      by_hand<double>([points](auto move, double* __restrict memory, double* __restrict packed) {
        for (int i = 0; i < points; ++i)
          for (int k = 0; k < 5; ++k) move(memory[5 * kRow * i + k], packed[5 * i + k]);
      })};
}

// NAS MG: the inner points of a face of an N^3 grid, as vectors of vectors.
template <int N>
Case mg(char axis) {
  constexpr int kInner = N - 2;
  const auto count = std::to_string(kInner), row = std::to_string(N), plane = std::to_string(N * N),
             plane_bytes = std::to_string(N * N * 8);
  const auto name = std::string("nas-mg-") + axis;
  if (axis == 'x')
    return {name,
            {{parse_type("hvector(" + count + ",1," + plane_bytes + ",vector(" + count + ",1," +
                         row + ",double))")}},
            by_hand<double>([](auto move, double* __restrict memory, double* __restrict packed) {
              for (int z = 0; z < kInner; ++z)
                for (int y = 0; y < kInner; ++y)
                  move(memory[(z * N + y) * N], packed[z * kInner + y]);
            })};
  const int stride = axis == 'y' ? N * N : N;
  return {
      name,
      {{parse_type("vector(" + count + "," + count + "," + (axis == 'y' ? plane : row) +
                   ",double)")}},
      by_hand<double>([stride](auto move, double* __restrict memory, double* __restrict packed) {
        for (int i = 0; i < kInner; ++i)
          for (int x = 0; x < kInner; ++x) move(memory[stride * i + x], packed[kInner * i + x]);
      })};
}

// MILC: the su3 vectors (three complex floats) of the lower z boundary of an L^4 lattice. Even and
// odd sites are apart.
template <int L>
Case milc() {
  constexpr int kBlock = 6 * L * L / 2, kStride = kBlock * L, kParity = kStride * L;
  return {"milc-su3-zdown",
          {{parse_type("hvector(2,1," + std::to_string(kParity * 4) + ",vector(" +
                       std::to_string(L) + "," + std::to_string(L * L / 2) + "," +
                       std::to_string(L * L * L / 2) + ",contiguous(6,float)))")}},
          by_hand<float>([](auto move, float* __restrict memory, float* __restrict packed) {
            for (int parity = 0; parity < 2; ++parity)
              for (int t = 0; t < L; ++t, packed += kBlock)
                for (int i = 0; i < kBlock; ++i)
                  move(memory[parity * kParity + t * kStride + i], packed[i]);
          })};
}

// WRF: fields of (south-north, bottom-top, west-east) points with a halo of three. The columns are
// sent west (x) or south (y), for one field or for all scalars but the first.
struct Wrf {
  int nj, nk, ni;

  int volume() const { return nj * nk * ni; }
};
constexpr int kWrfHalo = 3, kWrfScalars = 4;

template <int kColumns, class Move>
float* move_wrf(const Wrf& field, int rows, Move move, float* __restrict memory,
                float* __restrict packed) {
  memory += kWrfHalo * field.nk * field.ni + kWrfHalo;
  for (int j = 0; j < rows; ++j)
    for (int k = 0; k < field.nk; ++k, packed += kColumns)
      for (int i = 0; i < kColumns; ++i) move(memory[(j * field.nk + k) * field.ni + i], packed[i]);
  return packed;
}

template <int kColumns>
void add_wrf(std::vector<Case>& cases, const Wrf& field, int rows, const std::string& name) {
  const auto subarray = [](const std::string& sizes, const std::string& subsizes,
                           const std::string& starts) {
    return parse_type("subarray(C," + sizes + "," + subsizes + "," + starts + ",float)");
  };
  const auto [nj, nk, ni] = field;
  cases.push_back({name + "-3d",
                   {{subarray(list(nj, nk, ni), list(rows, nk, kColumns), "{3,0,3}")}},
                   by_hand<float>([=](auto move, float* memory, float* packed) {
                     move_wrf<kColumns>(field, rows, move, memory, packed);
                   })});
  cases.push_back({name + "-4d",
                   {{subarray(list(kWrfScalars, nj, nk, ni),
                              list(kWrfScalars - 1, rows, nk, kColumns), "{1,3,0,3}")}},
                   by_hand<float>([=](auto move, float* memory, float* packed) {
                     for (int s = 1; s < kWrfScalars; ++s)
                       packed = move_wrf<kColumns>(field, rows, move, memory + s * field.volume(),
                                                   packed);
                   })});
  // A struct of two surface fields, two fields and the scalars, one behind the other in memory.
  const auto surface = subarray(list(nj, ni), list(rows, kColumns), "{3,3}");
  const auto volumes = [&](int n) {
    return subarray(list(n, nj, nk, ni), list(n, rows, nk, kColumns), "{0,3,0,3}");
  };
  const Wrf flat{nj, 1, ni};
  const auto bytes = [&](int surfaces, int fields) {
    return std::int64_t{4} * (surfaces * flat.volume() + fields * field.volume());
  };
  cases.push_back(
      {name + "-struct",
       {{type(Struct{{1, 1, 1, 1, 1},
                     {0, bytes(1, 0), bytes(2, 0), bytes(2, 1), bytes(2, 2)},
                     {surface, surface, volumes(1), volumes(1), volumes(kWrfScalars)}})}},
       by_hand<float>([=](auto move, float* memory, float* packed) {
         for (int s = 0; s < 2; ++s, memory += flat.volume())
           packed = move_wrf<kColumns>(flat, rows, move, memory, packed);
         for (int s = 0; s < 2 + kWrfScalars; ++s, memory += field.volume())
           packed = move_wrf<kColumns>(field, rows, move, memory, packed);
       })});
}

// Returns the atoms near a boundary: about one of eight, in ascending order with irregular gaps.
std::vector<int> border_atoms(int entries) {
  std::mt19937 random(1);
  std::vector<int> list;
  for (int at = 0; static_cast<int>(list.size()) < entries;
       at += 1 + static_cast<int>(random() % 15))
    list.push_back(at);
  return list;
}

// Returns every second point, shuffled within groups of 64: the numbering of a mesh is local but
// irregular.
std::vector<int> mesh_points(int entries) {
  std::mt19937 random(2);
  std::vector<int> list(static_cast<std::size_t>(entries));
  for (int i = 0; i < entries; ++i)
    list[static_cast<std::size_t>(i)] = 2 * i + static_cast<int>(random() % 2);
  for (std::size_t begin = 0; begin < list.size(); begin += 64)
    for (std::size_t i = std::min(begin + 64, list.size()) - 1; i > begin; --i)
      std::swap(list[i], list[begin + random() % (i - begin + 1)]);
  return list;
}

// LAMMPS: positions (three doubles) of the listed atoms, then `kScalars` properties of each atom.
// Each property has its own array.
template <int kScalars>
Case lammps(const char* name, int entries) {
  auto atoms = border_atoms(entries);
  const int all = atoms.back() + 1;
  Struct arrays{{1}, {0}, {blocks_of(3, atoms, "double")}};
  const auto scalar = blocks_of(1, atoms, "double");
  for (int s = 0; s < kScalars; ++s) {
    arrays.blocklengths.push_back(1);
    arrays.displacements.push_back(std::int64_t{8} * (3 + s) * all);
    arrays.old.push_back(scalar);
  }
  return {
      name,
      {{type(std::move(arrays))}},
      by_hand<double>([all, atoms = std::move(atoms)](auto move, double* memory, double* packed) {
        packed = move_by_index<3>(move, atoms, memory, packed);
        for (int s = 0; s < kScalars; ++s)
          packed = move_by_index<1>(move, atoms, memory + (3 + s) * all, packed);
      })};
}

// SPECFEM3D: one float per point (outer core); three per point in two regions (crust-mantle, inner
// core); three floats of every tenth point.
Case specfem_oc(int entries) {
  auto points = mesh_points(entries);
  return {"specfem3d-oc", {{blocks_of(1, points, "float")}}, by_index_list<float, 1>(points)};
}
Case specfem_cm(int entries) {
  auto crust_mantle = mesh_points(entries), inner_core = border_atoms(entries / 8);
  const int offset = 3 * 2 * entries;
  return {
      "specfem3d-cm",
      {{type(Struct{{1, 1},
                    {0, std::int64_t{4} * offset},
                    {blocks_of(3, crust_mantle, "float"), blocks_of(3, inner_core, "float")}})}},
      by_hand<float>([offset, crust_mantle = std::move(crust_mantle),
                      inner_core = std::move(inner_core)](auto move, float* memory, float* packed) {
        packed = move_by_index<3>(move, crust_mantle, memory, packed);
        move_by_index<3>(move, inner_core, memory + offset, packed);
      })};
}
Case specfem_mt(int points) {
  constexpr int kStride = 3 * 10;
  return {"specfem3d-mt",
          {{parse_type("vector(" + std::to_string(points) + ",1,10,contiguous(3,float))")}},
          by_hand<float>([points](auto move, float* __restrict memory, float* __restrict packed) {
            for (int i = 0; i < points; ++i)
              for (int k = 0; k < 3; ++k) move(memory[kStride * i + k], packed[3 * i + k]);
          })};
}

// The transpose of a distributed 2-D FFT: the N x N block that one of two ranks gets.
template <int N>
Case fft2() {
  const auto n = std::to_string(N), row = std::to_string(2 * N);
  return {"fft2-transpose",
          {{parse_type("contiguous(" + n + ",resized(vector(" + n + ",1," + row +
                       ",contiguous(2,double)),0,16))")}},
          columns<std::complex<double>, N, 2 * N>()};
}

void add_application_patterns(std::vector<Case>& cases, bool small) {
  const auto pick = [small](int large_size, int small_size) {
    return small ? small_size : large_size;
  };
  cases.push_back(lu_x(pick(26214, 400)));
  cases.push_back(lu_y(pick(26214, 400)));
  for (const char axis : {'x', 'y', 'z'}) cases.push_back(small ? mg<34>(axis) : mg<258>(axis));
  cases.push_back(small ? milc<8>() : milc<32>());
  const auto field = small ? Wrf{32, 20, 32} : Wrf{320, 60, 320};
  add_wrf<kWrfHalo>(cases, field, field.nj - 2 * kWrfHalo, "wrf-x");
  if (small)
    add_wrf<32 - 2 * kWrfHalo>(cases, field, kWrfHalo, "wrf-y");
  else
    add_wrf<320 - 2 * kWrfHalo>(cases, field, kWrfHalo, "wrf-y");
  cases.push_back(lammps<5>("lammps-full", pick(16384, 256)));
  cases.push_back(lammps<3>("lammps-atomic", pick(21845, 256)));
  cases.push_back(specfem_oc(pick(262144, 4096)));
  cases.push_back(specfem_cm(pick(81920, 1024)));
  cases.push_back(specfem_mt(pick(87381, 1024)));
  cases.push_back(small ? fft2<32>() : fft2<256>());
  const auto structs = pick(65536, 1024);
  cases.push_back(char_double_int(structs));
  cases.push_back(short_int_char_double(structs));
  cases.push_back(particle(pick(32768, 512)));
  cases.push_back(changing_count(pick(131072, 2048)));
}

// ---- Index lists whose author knew more structure than the list shows. The loop by hand goes
// through the list. ----

Case of_doubles(std::string name, std::vector<int> list) {
  auto expr = blocks_of(1, list, "double");
  return {std::move(name), {{std::move(expr)}}, by_index_list<double, 1>(std::move(list))};
}

// Returns `count` starts in ascending order, at least `room` apart.
std::vector<int> irregular(int count, int room) {
  std::mt19937 random(1);
  std::vector<int> starts;
  for (int i = 0, at = 0; i < count; ++i, at += room + static_cast<int>(random() % 16))
    starts.push_back(at);
  return starts;
}

// Returns the same offsets behind each start.
std::vector<int> at_each(const std::vector<int>& starts, const std::vector<int>& offsets) {
  std::vector<int> list;
  for (const int start : starts)
    for (const int offset : offsets) list.push_back(start + offset);
  return list;
}

std::vector<int> steps(int count, int stride) {
  std::vector<int> list;
  for (int i = 0; i < count; ++i) list.push_back(i * stride);
  return list;
}

void add_lists(std::vector<Case>& cases, int entries, const std::string& suffix) {
  // One column of each row of each plane.
  cases.push_back(
      of_doubles("list-face" + suffix, at_each(steps(entries / 64, 64 * 66), steps(64, 66))));
  // LAMMPS with an array for each coordinate: x, y and z of the listed atoms.
  const auto atoms = irregular(entries / 3, 1);
  cases.push_back(of_doubles("list-atoms" + suffix, at_each(atoms, steps(3, atoms.back() + 1))));
  // SPECFEM3D: a face of each listed element of 5 x 5 x 5 points, across or along its rows.
  const auto elements = irregular(entries / 25, 125);
  cases.push_back(of_doubles("list-element-faces-x" + suffix, at_each(elements, steps(25, 5))));
  cases.push_back(of_doubles("list-element-faces-y" + suffix,
                             at_each(elements, at_each(steps(5, 25), steps(5, 1)))));
}

// ---- Constructors that MPI does not have, packed by plans that keep their rules. The loop by hand
// follows the rule. ----

// The lower triangle of a matrix of doubles, row by row.
Case triangle(int n) {
  return {"triangle-" + std::to_string(n),
          {{type(Triangular{n, 1, 1, n, named("double")})}},
          by_hand<double>([n](auto move, double* __restrict memory, double* __restrict packed) {
            for (int i = 0; i < n; ++i)
              for (int k = 0; k <= i; ++k) move(memory[std::int64_t{i} * n + k], *packed++);
          }),
          Mode::by_rule};
}

// Buckets of a size, filled at random.
Case buckets(int size, int number) {
  std::mt19937 random(1);
  std::vector<std::int64_t> counts;
  for (int i = 0; i < number; ++i)
    counts.push_back(static_cast<std::int64_t>(random() % (static_cast<std::uint32_t>(size) + 1)));
  return {"buckets-of-" + std::to_string(size),
          {{type(Bucket{size, counts, named("double")})}},
          by_hand<double>(
              [counts, size](auto move, double* __restrict memory, double* __restrict packed) {
                for (std::size_t i = 0; i < counts.size(); ++i, memory += size)
                  for (std::int64_t k = 0; k < counts[i]; ++k) move(memory[k], *packed++);
              }),
          Mode::by_rule};
}

}  // namespace

std::vector<Case> patterns(const Options& options) {
  std::vector<Case> cases;
  if (!options.smoke) add_application_patterns(cases, false);
  const auto large = cases.size();
  add_application_patterns(cases, true);
  for (auto i = large; i < cases.size(); ++i) cases[i].name += "-small";
  cases.push_back(transpose<16>());
  cases.push_back(transpose<32>());
  cases.push_back(transpose<64>());
  if (!options.smoke) {
    cases.push_back(transpose<128>());
    cases.push_back(transpose<256>());
    cases.push_back(transpose<512>());
    cases.push_back(transpose<1024>());
    add_lists(cases, 131072, "");
  }
  add_lists(cases, 2048, "-small");
  cases.push_back(triangle(options.smoke ? 64 : 512));
  cases.push_back(buckets(6, options.smoke ? 682 : 43690));
  return cases;
}

}  // namespace halocline::dtype::bench
