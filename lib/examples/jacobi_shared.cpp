// SPDX-License-Identifier: BSD-3-Clause
// Does Jacobi steps in a periodic plane whose arrays lie in memory that all ranks of a node reach.
// The exchange `shared` copies straight from array to array, without messages. Plain MPI does the
// same once more, with the same memory. Ranks of several nodes send messages in between.
//   mpirun -n 2 jacobi_shared [POINTS [STEPS]]
#include <mpi.h>

#include <array>
#include <comm/exchange/exchange_plan.hpp>
#include <comm/node/shared_window.hpp>
#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace halocline;

static int n = 1024, steps = 20;  // n: owned points along each axis
static MPI_Comm cart;
static std::size_t at(int y, int x) {
  return static_cast<std::size_t>(y) * (n + 2) + x;
}

// Describes what goes to a neighbour, and the ghosts that its message fills.
struct Side {
  int partner, send_tag, receive_tag;
  std::size_t owned, ghosts;  // first points
  MPI_Datatype type;
};

static std::vector<Side> sides() {
  MPI_Datatype row, column;
  MPI_Type_contiguous(n, MPI_DOUBLE, &row);
  MPI_Type_vector(n, 1, n + 2, MPI_DOUBLE, &column);
  MPI_Type_commit(&row), MPI_Type_commit(&column);
  int north, south, west, east;
  MPI_Cart_shift(cart, 0, 1, &north, &south), MPI_Cart_shift(cart, 1, 1, &west, &east);
  return {{north, 0, 1, at(1, 1), at(0, 1), row},
          {south, 1, 0, at(n, 1), at(n + 1, 1), row},
          {west, 2, 3, at(1, 1), at(1, 0), column},
          {east, 3, 2, at(1, n), at(1, n + 1), column}};
}

// Returns the sum of all points after all steps. Lowers `seconds` to those of the fastest exchange.
template <class Exchange>
static double solve(const std::array<double*, 2>& u, Exchange exchange, double& seconds) {
  for (std::size_t i = 0; i < at(n + 2, 0); ++i) u[0][i] = static_cast<double>(i * 7919 % 1000);
  for (int step = 0; step < steps; ++step) {
    MPI_Barrier(cart);  // the time of the exchange alone
    const double* const old = u[step % 2];
    const double begin = MPI_Wtime();
    exchange(step % 2);
    if (const double time = MPI_Wtime() - begin; time < seconds) seconds = time;
    for (int y = 1; y <= n; ++y)
      for (int x = 1; x <= n; ++x)
        u[1 - step % 2][at(y, x)] =
            (old[at(y, x - 1)] + old[at(y, x + 1)] + old[at(y - 1, x)] + old[at(y + 1, x)]) / 4;
  }
  double sum = 0, all = 0;
  for (int y = 1; y <= n; ++y)
    for (int x = 1; x <= n; ++x) sum += u[steps % 2][at(y, x)];
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
    // One window for both arrays, instead of malloc. It must outlive the plans.
    const auto points = at(n + 2, 0);
    const comm::SharedWindow window(cart, static_cast<std::int64_t>(2 * points * sizeof(double)));
    auto* const first = reinterpret_cast<double*>(window.data());
    const std::array<double*, 2> u{first, first + points};
    const auto all_sides = sides();
    const auto plan_of = [&](double* data) {
      std::vector<comm::ExchangeJob> jobs;
      for (const auto& side : all_sides)
        jobs.push_back({.partner = side.partner,
                        .send_buffer = data + side.owned,
                        .send_count = 1,
                        .send_type = side.type,
                        .send_tag = side.send_tag,
                        .receive_buffer = data + side.ghosts,
                        .receive_count = 1,
                        .receive_type = side.type,
                        .receive_tag = side.receive_tag});
      return comm::ExchangePlan(cart, jobs, comm::Exchange::shared, {.windows = {&window}});
    };
    std::array plans{plan_of(u[0]), plan_of(u[1])};
    const auto by_mpi = [&](int which) {
      std::array<MPI_Request, 8> requests{};
      auto* next = requests.data();
      for (const auto& side : all_sides)
        MPI_Irecv(u[which] + side.ghosts, 1, side.type, side.partner, side.receive_tag, cart,
                  next++);
      for (const auto& side : all_sides)
        MPI_Isend(u[which] + side.owned, 1, side.type, side.partner, side.send_tag, cart, next++);
      MPI_Waitall(8, requests.data(), MPI_STATUSES_IGNORE);
    };
    double ours = 1e9, theirs = 1e9;  // seconds
    const double checksum = solve(
        u, [&](int which) { plans[which].start().finish(); }, ours);
    failed = checksum != solve(u, by_mpi, theirs);
    if (rank == 0)
      std::printf("%d ranks, checksum %.17g %s by plain MPI, exchange %.2f x as fast as there\n",
                  ranks, checksum, failed == 0 ? "as" : "NOT as", theirs / ours);
  } catch (const Error& error) {
    std::fprintf(stderr, "jacobi_shared: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MPI_Finalize();
  return failed;
}
