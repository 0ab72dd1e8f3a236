// SPDX-License-Identifier: BSD-3-Clause
// Does Jacobi steps for Laplace's equation in a box with fixed walls, on a Cartesian communicator.
// A step averages all 26 neighbours, so it needs the corners, too. A step reads one array and
// writes the other, so each array has its own plan.
//   mpirun -n 4 jacobi
#include <mpi.h>

#include <array>
#include <cmath>
#include <comm/exchange/exchange_plan.hpp>
#include <cstdio>
#include <vector>

using namespace halocline;

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::array<int, 3> grid{}, open{}, at{};  // in z, y, x, the order of MPI_ORDER_C
  MPI_Dims_create(ranks, 3, grid.data());
  MPI_Comm cart;
  MPI_Cart_create(MPI_COMM_WORLD, 3, grid.data(), open.data(), 0, &cart);
  MPI_Comm_rank(cart, &rank);
  MPI_Cart_coords(cart, rank, 3, at.data());
  int wrong = 0;
  try {
    // 16 points per rank and axis, and one ghost or wall point on each side.
    constexpr int n = 16, stored = n + 2, steps = 10;
    constexpr std::array<int, 3> sizes{stored, stored, stored};
    const auto index = [](int z, int y, int x) {
      return (static_cast<std::size_t>(z) * stored + static_cast<std::size_t>(y)) * stored +
             static_cast<std::size_t>(x);
    };
    // The solution that the walls prescribe. The steps keep it, if every ghost is right.
    const auto solution = [&](int z, int y, int x) {
      return 1.0 * (at[0] * n + z) + 2.0 * (at[1] * n + y) + 3.0 * (at[2] * n + x);
    };
    std::array<std::vector<double>, 2> u;
    for (auto& array : u) array.resize(std::size_t{stored} * stored * stored);

    // Each side sends its outer plane of owned points, and receives the plane of ghosts behind it.
    // Round k exchanges the planes of axis k. They include the ghosts of earlier axes, so edges and
    // corners travel, too.
    const auto jobs_of = [&](std::vector<double>& array) {
      std::vector<comm::ExchangeJob> jobs;
      for (int axis = 0; axis < 3; ++axis) {
        const auto a = static_cast<std::size_t>(axis);
        std::array<int, 3> extent{n, n, n}, start{1, 1, 1};
        for (std::size_t done = 0; done < a; ++done) extent[done] = stored, start[done] = 0;
        extent[a] = 1;
        const auto plane = [&](int begin) {
          start[a] = begin;
          MPI_Datatype type;
          MPI_Type_create_subarray(3, sizes.data(), extent.data(), start.data(), MPI_ORDER_C,
                                   MPI_DOUBLE, &type);
          return type;
        };
        int below = 0, above = 0;
        MPI_Cart_shift(cart, axis, 1, &below, &above);  // MPI_PROC_NULL behind a wall
        double* const data = array.data();
        constexpr int down = 0, up = 1;  // tags
        jobs.push_back({.partner = below,
                        .round = axis,
                        .send_buffer = data,
                        .send_count = 1,
                        .send_type = plane(1),
                        .send_tag = down,
                        .receive_buffer = data,
                        .receive_count = 1,
                        .receive_type = plane(0),
                        .receive_tag = up});
        jobs.push_back({.partner = above,
                        .round = axis,
                        .send_buffer = data,
                        .send_count = 1,
                        .send_type = plane(n),
                        .send_tag = up,
                        .receive_buffer = data,
                        .receive_count = 1,
                        .receive_type = plane(n + 1),
                        .receive_tag = down});
      }
      return jobs;
    };
    const auto plan_of = [&](std::vector<double>& array) {
      auto jobs = jobs_of(array);
      comm::ExchangePlan plan(cart, jobs, comm::Exchange::p2p);
      for (auto& job : jobs) MPI_Type_free(&job.send_type), MPI_Type_free(&job.receive_type);
      return plan;
    };
    std::array plans{plan_of(u[0]), plan_of(u[1])};

    for (int z = 0; z < stored; ++z)
      for (int y = 0; y < stored; ++y)
        for (int x = 0; x < stored; ++x) {
          const auto is_wall = [&](std::size_t axis, int i) {
            return (i == 0 && at[axis] == 0) || (i == n + 1 && at[axis] == grid[axis] - 1);
          };
          const bool owned = z % (n + 1) != 0 && y % (n + 1) != 0 && x % (n + 1) != 0;
          const bool known = owned || is_wall(0, z) || is_wall(1, y) || is_wall(2, x);
          for (auto& array : u) array[index(z, y, x)] = known ? solution(z, y, x) : NAN;
        }
    const auto sum_around = [&](const std::vector<double>& array, int z, int y, int x) {
      double sum = 0;
      for (int k = z - 1; k <= z + 1; ++k)
        for (int j = y - 1; j <= y + 1; ++j)
          for (int i = x - 1; i <= x + 1; ++i) sum += array[index(k, j, i)];
      return sum;
    };
    for (std::size_t step = 0; step < steps; ++step) {
      auto& old = u[step % 2];
      auto& next = u[(step + 1) % 2];
      plans[step % 2].start().finish();
      for (int z = 1; z <= n; ++z)
        for (int y = 1; y <= n; ++y)
          for (int x = 1; x <= n; ++x)
            next[index(z, y, x)] = (sum_around(old, z, y, x) - old[index(z, y, x)]) / 26;
    }
    for (int z = 1; z <= n; ++z)
      for (int y = 1; y <= n; ++y)
        for (int x = 1; x <= n; ++x)
          if (u[steps % 2][index(z, y, x)] != solution(z, y, x)) wrong = 1;  // true for a NaN, too
  } catch (const Error& error) {
    std::fprintf(stderr, "jacobi: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d ranks, %d of them with errors\n", ranks, wrong);
  MPI_Comm_free(&cart);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
