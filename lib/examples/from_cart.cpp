// SPDX-License-Identifier: BSD-3-Clause
// Averages all 8 neighbours in a periodic plane, once with comm::CartHalo and once with plain MPI.
// CartHalo makes types, tags and neighbours. A step reads one array and writes the other.
//   mpirun -n 4 from_cart [POINTS [STEPS]]
#include <mpi.h>

#include <array>
#include <comm/halo/cart_halo.hpp>
#include <comm/node/shared_window.hpp>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

using namespace halocline;

static int n = 512, steps = 20, rank = 0;  // n: owned points along each axis
static MPI_Comm cart;
static std::size_t at(int y, int x) {
  return static_cast<std::size_t>(y) * (n + 2) + x;
}

// Returns the checksum after all steps. Lowers `seconds` to those of the fastest exchange.
template <class Exchange>
double solve(const std::array<double*, 2>& u, Exchange exchange, double& seconds) {
  for (std::size_t i = 0; i < at(n + 2, 0); ++i)
    u[0][i] = static_cast<double>((i * 7919 + rank * 104729) % 1000);
  for (int step = 0; step < steps; ++step) {
    MPI_Barrier(cart);  // the time of the exchange alone
    const double *const now = u[step % 2], begin = MPI_Wtime();
    exchange(step);
    if (const double time = MPI_Wtime() - begin; time < seconds) seconds = time;
    for (int y = 1; y <= n; ++y)
      for (int x = 1; x <= n; ++x) {
        double sum = -now[at(y, x)];
        for (int j = y - 1; j <= y + 1; ++j)
          for (int i = x - 1; i <= x + 1; ++i) sum += now[at(j, i)];
        u[1 - step % 2][at(y, x)] = sum / 8;
      }
  }
  double sum = 0, all = 0;
  for (int y = 1; y <= n; ++y)
    for (int x = 1; x <= n; ++x) sum += u[steps % 2][at(y, x)] * (1 + (y + x) % 7);
  MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, cart);
  return all;
}

// Holds what plain MPI needs for a neighbour. The tag is the direction, seen from the sender.
struct Message {
  int partner, tag;
  MPI_Datatype sent, ghosts;
};

std::vector<Message> messages_by_mpi() {
  std::array<int, 2> here{}, grid{}, periodic{};
  MPI_Cart_get(cart, 2, grid.data(), periodic.data(), here.data());
  std::vector<Message> out;
  for (const int tag : {0, 1, 2, 3, 5, 6, 7, 8}) {  // 4 leads nowhere
    const std::array<int, 2> to{tag / 3 - 1, tag % 3 - 1}, stored{n + 2, n + 2};
    std::array<int, 2> place{}, extent{}, sent{}, ghosts{};
    for (std::size_t axis = 0; axis < 2; ++axis) {
      place[axis] = here[axis] + to[axis];  // MPI_Cart_rank wraps it
      extent[axis] = to[axis] == 0 ? n : 1;
      sent[axis] = to[axis] > 0 ? n : 1;
      ghosts[axis] = to[axis] > 0 ? n + 1 : to[axis] < 0 ? 0 : 1;
    }
    auto& one = out.emplace_back();
    one.tag = tag;
    MPI_Cart_rank(cart, place.data(), &one.partner);
    for (auto [type, begin] : {std::pair{&one.sent, &sent}, {&one.ghosts, &ghosts}}) {
      MPI_Type_create_subarray(2, stored.data(), extent.data(), begin->data(), MPI_ORDER_C,
                               MPI_DOUBLE, type);
      MPI_Type_commit(type);
    }
  }
  return out;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc > 1) n = std::atoi(argv[1]);
  if (argc > 2) steps = std::atoi(argv[2]);
  int ranks = 1, failed = 0, grid[2]{}, periodic[2]{1, 1};
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Dims_create(ranks, 2, grid);
  MPI_Cart_create(MPI_COMM_WORLD, 2, grid, periodic, 0, &cart);
  MPI_Comm_rank(cart, &rank);
  try {
    const std::size_t points = at(n + 2, 0);  // both arrays are in memory that neighbours reach
    const comm::SharedWindow window(cart, static_cast<std::int64_t>(2 * points * sizeof(double)));
    auto* const first = reinterpret_cast<double*>(window.data());
    const std::array<double*, 2> u{first, first + points};
    const comm::CartField field{
        .buffer = u[0], .swapped = u[1], .owned = {n, n}, .low = {1, 1}, .high = {1, 1}};
    comm::CartHalo halo(cart, {field}, comm::Exchange::automatic, 2, {.windows = {&window}});
    double ours = 1e9, theirs = 1e9;  // seconds
    const auto by_halo = [&](int) { halo.start().finish(), halo.swap(); };
    const double checksum = solve(u, by_halo, ours);
    const auto messages = messages_by_mpi();
    const auto by_mpi = [&](int step) {
      std::array<MPI_Request, 16> all{};
      auto* next = all.data();
      for (const auto& m : messages)
        MPI_Irecv(u[step % 2], 1, m.ghosts, m.partner, 8 - m.tag, cart, next++);
      for (const auto& m : messages)
        MPI_Isend(u[step % 2], 1, m.sent, m.partner, m.tag, cart, next++);
      MPI_Waitall(16, all.data(), MPI_STATUSES_IGNORE);
    };
    failed = checksum != solve(u, by_mpi, theirs) ? 1 : 0;
    if (rank == 0)
      std::printf("%d ranks, checksum %.17g %s by plain MPI, exchange %.2f x as fast as there\n",
                  ranks, checksum, failed == 0 ? "as" : "NOT as", theirs / ours);
  } catch (const Error& error) {
    std::fprintf(stderr, "from_cart: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MPI_Finalize();
  return failed;
}
