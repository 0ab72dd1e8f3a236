// SPDX-License-Identifier: BSD-3-Clause
// Does Jacobi steps in a box with fixed walls, with own MPI datatypes. A step averages all 26
// neighbours. It reads one array and writes the other, so each array has a plan of its own.
//   mpirun -n 4 jacobi [POINTS [STEPS]]
#include <mpi.h>

#include <array>
#include <comm/exchange/exchange_plan.hpp>
#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace halocline;
static int n = 64, steps = 20;  // n: owned points along each axis, z before y before x
static MPI_Comm cart;
static std::array<std::vector<double>, 2> u;
static std::size_t index(int z, int y, int x) {
  return (static_cast<std::size_t>(z) * (n + 2) + y) * (n + 2) + x;
}

// Holds the ranks at both sides of an axis, and types of planes. Each side sends its outer plane of
// owned points, and receives the ghosts behind it.
struct Axis {
  int below, above;
  MPI_Datatype ghosts_below, first, last, ghosts_above;
};

// Axes are exchanged one after the other. The planes of an axis include the ghosts of earlier axes,
// so edges and corners travel, too.
static Axis axis_of(int axis) {
  std::array<int, 3> sizes{n + 2, n + 2, n + 2}, extent{n, n, n}, begin{1, 1, 1};
  for (int before = 0; before < axis; ++before) extent[before] = n + 2, begin[before] = 0;
  extent[axis] = 1;
  const auto plane = [&](int at) {
    begin[axis] = at;
    MPI_Datatype out;
    MPI_Type_create_subarray(3, sizes.data(), extent.data(), begin.data(), MPI_ORDER_C, MPI_DOUBLE,
                             &out);
    MPI_Type_commit(&out);
    return out;
  };
  Axis out{0, 0, plane(0), plane(1), plane(n), plane(n + 1)};
  MPI_Cart_shift(cart, axis, 1, &out.below, &out.above);  // MPI_PROC_NULL behind a wall
  return out;
}

static comm::ExchangePlan plan_of(double* u, const std::array<Axis, 3>& axes) {
  std::vector<comm::ExchangeJob> jobs;
  for (int round = 0; round < 3; ++round) {
    const auto& a = axes[static_cast<std::size_t>(round)];
    // Partner, round; buffer, count, type, tag of what is sent; the same of what is received.
    jobs.push_back({a.below, round, u, 1, a.first, 0, u, 1, a.ghosts_below, 1});
    jobs.push_back({a.above, round, u, 1, a.last, 1, u, 1, a.ghosts_above, 0});
  }
  return {cart, jobs, comm::Exchange::p2p};
}

static void exchange_by_mpi(double* data, const std::array<Axis, 3>& axes) {
  for (const auto& a : axes) {
    MPI_Sendrecv(data, 1, a.first, a.below, 0, data, 1, a.ghosts_above, a.above, 0, cart,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(data, 1, a.last, a.above, 1, data, 1, a.ghosts_below, a.below, 1, cart,
                 MPI_STATUS_IGNORE);
  }
}

// Returns the sum of all points after all steps. Lowers `seconds` to those of the fastest exchange.
template <class Exchange>
static double solve(Exchange exchange, double& seconds) {
  for (auto& array : u)
    for (std::size_t i = 0; i < array.size(); ++i) array[i] = static_cast<double>(i * 7919 % 1000);
  for (std::size_t step = 0; step < static_cast<std::size_t>(steps); ++step) {
    MPI_Barrier(cart);  // the time of the exchange alone
    const double begin = MPI_Wtime();
    exchange(step % 2);
    if (const double time = MPI_Wtime() - begin; time < seconds) seconds = time;
    const auto& old = u[step % 2];
    for (int z = 1; z <= n; ++z)
      for (int y = 1; y <= n; ++y)
        for (int x = 1; x <= n; ++x) {
          double sum = -old[index(z, y, x)];
          for (int k = z - 1; k <= z + 1; ++k)
            for (int j = y - 1; j <= y + 1; ++j)
              for (int i = x - 1; i <= x + 1; ++i) sum += old[index(k, j, i)];
          u[1 - step % 2][index(z, y, x)] = sum / 26;
        }
  }
  double sum = 0, all = 0;
  for (const double value : u[static_cast<std::size_t>(steps) % 2]) sum += value;
  MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, cart);
  return all;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc > 1) n = std::atoi(argv[1]);
  if (argc > 2) steps = std::atoi(argv[2]);
  int ranks = 1, rank = 0, failed = 0, grid[3]{}, walls[3]{};
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Dims_create(ranks, 3, grid);
  MPI_Cart_create(MPI_COMM_WORLD, 3, grid, walls, 0, &cart);
  MPI_Comm_rank(cart, &rank);
  try {
    for (auto& array : u) array.resize(index(n + 2, 0, 0));
    const std::array axes{axis_of(0), axis_of(1), axis_of(2)};
    std::array plans{plan_of(u[0].data(), axes), plan_of(u[1].data(), axes)};
    double ours = 1e9, theirs = 1e9;  // seconds
    const double checksum = solve([&](auto which) { plans[which].start().finish(); }, ours);
    failed = checksum != solve([&](auto which) { exchange_by_mpi(u[which].data(), axes); }, theirs);
    if (rank == 0)
      std::printf("%d ranks, checksum %.17g %s by plain MPI, exchange %.2f x as fast as there\n",
                  ranks, checksum, failed == 0 ? "as" : "NOT as", theirs / ours);
  } catch (const Error& error) {
    std::fprintf(stderr, "jacobi: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MPI_Finalize();
  return failed;
}
