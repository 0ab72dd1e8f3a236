// SPDX-License-Identifier: BSD-3-Clause
// Gathers the mass of all particles at rank 0. The ranks have different numbers of particles, and
// each particle is a struct, so the masses have gaps. Does it with comm::GatherPlan and with
// MPI_Gatherv.
//   mpirun -n 4 gather [PARTICLES [REPETITIONS]]
#include <mpi.h>

#include <algorithm>
#include <comm/gather/gather_plan.hpp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace halocline;

struct Particle {
  double position[3], mass;
};

// Calls `gather()` often. Returns the least seconds, the same on all ranks.
template <class Gather>
double time(int repetitions, Gather gather) {
  double least = 1e9;
  for (int i = 0; i < repetitions; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = -MPI_Wtime();
    gather();
    seconds += MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    least = std::min(least, seconds);
  }
  return least;
}

double checksum_of(const std::vector<double>& all) {
  double sum = 0;
  for (std::size_t i = 0; i < all.size(); ++i) sum += all[i] * static_cast<double>(1 + i % 7);
  return sum;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int most = argc > 1 ? std::atoi(argv[1]) : 20000;
  const int repetitions = argc > 2 ? std::atoi(argv[2]) : 20;
  int rank = 0, ranks = 1, failed = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<int> counts, begins;
  int end = 0;
  for (int r = 0; r < ranks; ++r) {
    counts.push_back(most / (1 + r % 3));
    begins.push_back(end);
    end += counts.back();
  }
  const int mine = counts[static_cast<std::size_t>(rank)];
  std::vector<Particle> particles(static_cast<std::size_t>(mine));
  for (int i = 0; i < mine; ++i) particles[static_cast<std::size_t>(i)].mass = i % 100 + 0.5 * rank;
  std::vector<double> all(rank == 0 ? static_cast<std::size_t>(end) : 0), expected = all;
  MPI_Datatype mass;  // of one particle: the next one begins behind the struct
  MPI_Type_create_resized(MPI_DOUBLE, 0, sizeof(Particle), &mass);
  MPI_Type_commit(&mass);
  void* const first = mine > 0 ? &particles[0].mass : nullptr;
  try {
    // Numbers are basic elements: a mass has one.
    comm::GatherPlan plan(comm::NodeCommunicators::of(MPI_COMM_WORLD),
                          {.buffer = first,
                           .elements = mine,
                           .type = mass,
                           .root_buffer = all.data(),
                           .root_elements = {counts.begin(), counts.end()},
                           .root_type = MPI_DOUBLE,
                           .root = 0},
                          comm::GatherVariant::zero_copy);
    const double ours = time(repetitions, [&] { plan.run(); });
    const double theirs = time(repetitions, [&] {
      MPI_Gatherv(first, mine, mass, expected.data(), counts.data(), begins.data(), MPI_DOUBLE, 0,
                  MPI_COMM_WORLD);
    });
    failed = all != expected ? 1 : 0;
    if (rank == 0)
      std::printf("%d ranks, checksum %.17g %s by MPI_Gatherv, %.2f x as fast as there\n", ranks,
                  checksum_of(all), failed == 0 ? "as" : "NOT as", theirs / ours);
  } catch (const Error& error) {
    std::fprintf(stderr, "gather: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MPI_Type_free(&mass);
  MPI_Finalize();
  return failed;
}
