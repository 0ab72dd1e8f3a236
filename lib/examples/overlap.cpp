// SPDX-License-Identifier: BSD-3-Clause
// Computes what needs no ghosts while the halo travels, then the rest. Prints how long a step takes
// with overlap, and by plain MPI one after the other.
//   mpirun -n 2 overlap [POINTS [STEPS]]
#include <mpi.h>

#include <algorithm>
#include <array>
#include <comm/halo/cart_halo.hpp>
#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace halocline;

static int n = 1024, steps = 20;  // n: owned points along each axis
static MPI_Comm cart;
static std::array<std::vector<double>, 2> u;
static std::size_t at(int y, int x) {
  return static_cast<std::size_t>(y) * (n + 2) + x;
}

// Computes the owned points of rows [first, last) and of columns [left, right) from array `from`.
static void compute(std::size_t from, int first, int last, int left, int right) {
  const auto& old = u[from];
  for (int y = first; y < last; ++y)
    for (int x = left; x < right; ++x)
      u[1 - from][at(y, x)] =
          (old[at(y, x - 1)] + old[at(y, x + 1)] + old[at(y - 1, x)] + old[at(y + 1, x)]) / 4;
}

static void step_with_overlap(comm::CartHalo& halo, std::size_t from) {
  auto pending = halo.start();
  // Some MPIs send long messages only inside of their calls. progress() lets them go on.
  constexpr int block = 64;
  for (int y = 2; y < n; y += block) {
    compute(from, y, std::min(y + block, n), 2, n);
    pending.progress();
  }
  pending.finish();
  halo.swap();
  compute(from, 1, 2, 1, n + 1), compute(from, n, n + 1, 1, n + 1);
  compute(from, 2, n, 1, 2), compute(from, 2, n, n, n + 1);
}

static void step_by_mpi(std::size_t from, MPI_Datatype column) {
  int north, south, west, east;
  MPI_Cart_shift(cart, 0, 1, &north, &south), MPI_Cart_shift(cart, 1, 1, &west, &east);
  double* const data = u[from].data();
  std::array<MPI_Request, 8> all{};
  MPI_Irecv(data + at(0, 1), n, MPI_DOUBLE, north, 1, cart, &all[0]);
  MPI_Irecv(data + at(n + 1, 1), n, MPI_DOUBLE, south, 0, cart, &all[1]);
  MPI_Irecv(data + at(1, 0), 1, column, west, 3, cart, &all[2]);
  MPI_Irecv(data + at(1, n + 1), 1, column, east, 2, cart, &all[3]);
  MPI_Isend(data + at(1, 1), n, MPI_DOUBLE, north, 0, cart, &all[4]);
  MPI_Isend(data + at(n, 1), n, MPI_DOUBLE, south, 1, cart, &all[5]);
  MPI_Isend(data + at(1, 1), 1, column, west, 2, cart, &all[6]);
  MPI_Isend(data + at(1, n), 1, column, east, 3, cart, &all[7]);
  MPI_Waitall(8, all.data(), MPI_STATUSES_IGNORE);
  compute(from, 1, n + 1, 1, n + 1);
}

// Returns the sum of all points after all steps, and lowers `seconds` to those of the fastest step.
template <class Step>
static double solve(Step step, double& seconds) {
  for (std::size_t i = 0; i < u[0].size(); ++i) u[0][i] = static_cast<double>(i * 7919 % 1000);
  for (int i = 0; i < steps; ++i) {
    MPI_Barrier(cart);
    const double begin = MPI_Wtime();
    step(static_cast<std::size_t>(i) % 2);
    seconds = std::min(seconds, MPI_Wtime() - begin);
  }
  double sum = 0, all = 0;
  for (int y = 1; y <= n; ++y)
    for (int x = 1; x <= n; ++x) sum += u[static_cast<std::size_t>(steps) % 2][at(y, x)];
  MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, cart);
  return all;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc > 1) n = std::atoi(argv[1]);
  if (argc > 2) steps = std::atoi(argv[2]);
  int ranks = 1, rank = 0, failed = 0, grid[2]{1, 0}, periodic[2]{1, 1};  // columns travel
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Dims_create(ranks, 2, grid);
  MPI_Cart_create(MPI_COMM_WORLD, 2, grid, periodic, 0, &cart);
  MPI_Comm_rank(cart, &rank);
  try {
    for (auto& array : u) array.resize(at(n + 2, 0));
    const comm::CartField field{.buffer = u[0].data(),
                                .swapped = u[1].data(),
                                .owned = {n, n},
                                .low = {1, 1},
                                .high = {1, 1}};
    comm::CartHalo halo(cart, {field}, comm::Exchange::p2p, 1);
    MPI_Datatype column;
    MPI_Type_vector(n, 1, n + 2, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    double ours = 1e9, theirs = 1e9;  // seconds
    const double checksum = solve([&](auto from) { step_with_overlap(halo, from); }, ours);
    failed = checksum != solve([&](auto from) { step_by_mpi(from, column); }, theirs);
    if (rank == 0)
      std::printf("%d ranks, checksum %.17g %s by plain MPI, a step %.2f x as fast as there\n",
                  ranks, checksum, failed == 0 ? "as" : "NOT as", theirs / ours);
  } catch (const Error& error) {
    std::fprintf(stderr, "overlap: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MPI_Finalize();
  return failed;
}
