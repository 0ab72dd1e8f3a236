// SPDX-License-Identifier: BSD-3-Clause
// Packing the halo slabs of one block: our host packer beside the loop one would write by hand and
// MPI_Pack. Ratios within one run are what counts. All three must give the same bytes before any of
// them is timed.
//
//   bench_pack [--points=N] [Google Benchmark's flags]      N^3 doubles, radius 3; default 128
#include <benchmark/benchmark.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "dtype/datatype.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "dtype/support/mpi_check.hpp"
#include "dtype/support/narrow.hpp"
#include "dtype/type_tree.hpp"

namespace {

using namespace halocline;
using namespace halocline::dtype;

constexpr std::int64_t kRadius = 3;

// One of the 26 regions; the others of its class differ in their start alone. Arrays are (z, y, x),
// x contiguous.
struct Slab {
  std::string_view name;
  bool thin_z, thin_y, thin_x;
};
constexpr Slab kSlabs[] = {{"face-x", false, false, true}, {"face-y", false, true, false},
                           {"face-z", true, false, false}, {"edge-xy", false, true, true},
                           {"edge-xz", true, false, true}, {"edge-yz", true, true, false},
                           {"corner", true, true, true}};

// A block with its halo, and the slab of its inner points that one neighbour gets.
class Block {
 public:
  Block(const Slab& slab, std::int64_t points)
      : size_(points + 2 * kRadius),
        nz_(slab.thin_z ? kRadius : points),
        ny_(slab.thin_y ? kRadius : points),
        nx_(slab.thin_x ? kRadius : points),
        memory_(static_cast<std::size_t>(size_ * size_ * size_)),
        packed_(static_cast<std::size_t>(nz_ * ny_ * nx_)),
        handle_(make_datatype(TypeExpr{Subarray{Order::c,
                                                {size_, size_, size_},
                                                {nz_, ny_, nx_},
                                                {kRadius, kRadius, kRadius},
                                                named("double")}})),
        plan_(std::get<PackPlan>(make_plan(handle_.get()))) {
    fill();
  }

  void fill() {
    for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i] = static_cast<double>(i) + 0.5;
    for (std::size_t i = 0; i < packed_.size(); ++i) packed_[i] = -static_cast<double>(i);
  }

  std::int64_t bytes() const { return plan_.packed_bytes(1); }
  const std::vector<double>& memory() const { return memory_; }
  const std::vector<double>& packed() const { return packed_; }

  void hand_pack() {
    each_row([&](const double* row, double* at) {
      for (std::int64_t x = 0; x < nx_; ++x) at[x] = row[x];
    });
  }
  void hand_unpack() {
    each_row([&](double* row, const double* at) {
      for (std::int64_t x = 0; x < nx_; ++x) row[x] = at[x];
    });
  }
  void host_pack() { HostPacker().pack(plan_, memory_.data(), 1, packed_.data()); }
  void host_unpack() { HostPacker().unpack(plan_, packed_.data(), memory_.data(), 1); }
  void mpi_pack() {
    int position = 0;
    HALOCLINE_MPI(MPI_Pack(memory_.data(), 1, handle_.get(), packed_.data(), packed_size(),
                           &position, MPI_COMM_SELF));
  }
  void mpi_unpack() {
    int position = 0;
    HALOCLINE_MPI(MPI_Unpack(packed_.data(), packed_size(), &position, memory_.data(), 1,
                             handle_.get(), MPI_COMM_SELF));
  }

 private:
  int packed_size() const { return checked_int(bytes(), "packed bytes"); }

  template <class Copy>
  void each_row(Copy copy) {
    double* at = packed_.data();
    for (std::int64_t z = kRadius; z < kRadius + nz_; ++z)
      for (std::int64_t y = kRadius; y < kRadius + ny_; ++y, at += nx_)
        copy(memory_.data() + (z * size_ + y) * size_ + kRadius, at);
  }

  std::int64_t size_, nz_, ny_, nx_;
  std::vector<double> memory_, packed_;
  Datatype handle_;
  PackPlan plan_;
};

using Operation = void (Block::*)();
struct Method {
  std::string_view name;
  Operation pack, unpack;
};
constexpr Method kMethods[] = {{"hand", &Block::hand_pack, &Block::hand_unpack},
                               {"host", &Block::host_pack, &Block::host_unpack},
                               {"mpi", &Block::mpi_pack, &Block::mpi_unpack}};

bool equals_hand_loop(const Slab& slab, std::int64_t points, Operation operation, Operation hand) {
  Block block(slab, points), expected(slab, points);
  (block.*operation)();
  (expected.*hand)();
  return block.memory() == expected.memory() && block.packed() == expected.packed();
}

void run(benchmark::State& state, const Slab& slab, std::int64_t points, Operation operation,
         Operation hand) {
  if (!equals_hand_loop(slab, points, operation, hand)) {
    state.SkipWithError("differs from the hand-written loop");
    return;
  }
  Block block(slab, points);
  for (auto _ : state) {
    (block.*operation)();
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * block.bytes());
}

void register_all(std::int64_t points) {
  const auto& hand = kMethods[0];
  for (const auto& slab : kSlabs)
    for (const bool packs : {true, false})
      for (const auto& method : kMethods) {
        const auto name = std::string(packs ? "pack/" : "unpack/") + std::string(slab.name) + "/" +
                          std::string(method.name);
        benchmark::RegisterBenchmark(name.c_str(), run, slab, points,
                                     packs ? method.pack : method.unpack,
                                     packs ? hand.pack : hand.unpack);
      }
}

// Takes --points=N out of the arguments.
std::int64_t read_points(int& argc, char** argv) {
  constexpr std::string_view kFlag = "--points=";
  std::int64_t points = 128;
  char** const end = std::remove_if(argv + 1, argv + argc, [&](const char* argument) {
    if (!std::string_view(argument).starts_with(kFlag)) return false;
    points = std::atoll(argument + kFlag.size());
    return true;
  });
  argc = static_cast<int>(end - argv);
  return points;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const auto points = read_points(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (points < kRadius || benchmark::ReportUnrecognizedArguments(argc, argv)) {
    std::fprintf(stderr, "usage: bench_pack [--points=N] (at least %lld) [--benchmark_...]\n",
                 static_cast<long long>(kRadius));
    MPI_Finalize();
    return 2;
  }
  register_all(points);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  MPI_Finalize();
  return 0;
}
