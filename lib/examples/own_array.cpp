// SPDX-License-Identifier: BSD-3-Clause
// Exchanges the halo of a user's own 3-D array with all 26 neighbours. The user's own MPI datatypes
// describe the halo.
//   mpirun -n 4 own_array
#include <mpi.h>

#include <comm/exchange/exchange_plan.hpp>
#include <comm/halo/halo_spec.hpp>
#include <cstdio>
#include <vector>

using namespace halocline;

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  try {
    // 20 x 16 x 12 points per rank, one ghost point on each side, periodic.
    const comm::Int3 local{20, 16, 12}, grid = comm::choose_ranks(ranks);
    const comm::Int3 global{local[0] * grid[0], local[1] * grid[1], local[2] * grid[2]};
    const comm::Decomposition decomposition(global, grid, true);
    const comm::HaloSpec halo{local, 1};
    const auto [nx, ny, nz] = halo.stored();

    // The array is the user's, in order z, y, x, with x contiguous. Each owned point holds its
    // global number.
    std::vector<double> u(static_cast<std::size_t>(nx * ny * nz), -1);
    const auto begin = decomposition.owned(rank).begin;
    const auto at = [&](std::int64_t x, std::int64_t y, std::int64_t z) -> double& {
      return u[static_cast<std::size_t>((z * ny + y) * nx + x)];
    };
    const auto number = [&](std::int64_t x, std::int64_t y, std::int64_t z) {
      const auto wrap = [&](std::int64_t i, std::size_t axis) {
        return (begin[axis] + i - 1 + global[axis]) % global[axis];
      };
      return static_cast<double>((wrap(z, 2) * global[1] + wrap(y, 1)) * global[0] + wrap(x, 0));
    };
    for (std::int64_t z = 1; z <= local[2]; ++z)
      for (std::int64_t y = 1; y <= local[1]; ++y)
        for (std::int64_t x = 1; x <= local[0]; ++x) at(x, y, z) = number(x, y, z);

    // Any datatype will do. Here a vector has the rows of a plane, and an hvector the planes of a
    // box.
    std::vector<MPI_Datatype> types;
    const auto describe = [&](int, const comm::Box& box) {
      MPI_Datatype plane, type;
      MPI_Type_vector(static_cast<int>(box.extent[1]), static_cast<int>(box.extent[0]),
                      static_cast<int>(nx), MPI_DOUBLE, &plane);
      MPI_Type_create_hvector(static_cast<int>(box.extent[2]), 1,
                              nx * ny * MPI_Aint{sizeof(double)}, plane, &type);
      MPI_Type_commit(&type);
      MPI_Type_free(&plane);
      types.push_back(type);
      return comm::Region{&at(box.begin[0], box.begin[1], box.begin[2]), 1, type};
    };
    const auto jobs = comm::halo_jobs(decomposition, rank, halo, 1, describe);
    comm::ExchangePlan plan(MPI_COMM_WORLD, jobs, comm::Exchange::alltoallv);
    for (auto& type : types) MPI_Type_free(&type);  // the plan keeps what it needs

    auto pending = plan.start();
    pending.finish();
    for (std::int64_t z = 0; z < nz; ++z)
      for (std::int64_t y = 0; y < ny; ++y)
        for (std::int64_t x = 0; x < nx; ++x) wrong += at(x, y, z) != number(x, y, z);
  } catch (const Error& error) {
    std::fprintf(stderr, "own_array: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d ranks, %d wrong ghosts\n", ranks, wrong);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
