// SPDX-License-Identifier: BSD-3-Clause
// Packs a face of a 3-D array and unpacks it again, with a plan of its datatype and with MPI_Pack.
// No message is sent: the bytes may go to a file or into a library of your own.
//   pack_only [POINTS [REPETITIONS]]
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <dtype/datatype.hpp>
#include <dtype/pack/host/host_packer.hpp>
#include <vector>

using namespace halocline;

// Calls `work()` often. Returns the least seconds.
template <class Work>
double time(int repetitions, Work work) {
  double least = 1e9;
  for (int i = 0; i < repetitions; ++i) {
    const double begin = MPI_Wtime();
    work();
    least = std::min(least, MPI_Wtime() - begin);
  }
  return least;
}

unsigned long checksum_of(const std::vector<std::byte>& bytes) {
  unsigned long sum = 0;
  for (const auto byte : bytes) sum = sum * 31 + static_cast<unsigned long>(byte);
  return sum;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int n = argc > 1 ? std::atoi(argv[1]) : 128;
  const int repetitions = argc > 2 ? std::atoi(argv[2]) : 20;
  int rank = 0, failed = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  // A face of two points along the contiguous axis: n * n pieces of 16 bytes.
  const std::array<int, 3> sizes{n, n, n}, extent{n, n, std::min(n, 2)}, begin{0, 0, 0};
  MPI_Datatype face;
  MPI_Type_create_subarray(3, sizes.data(), extent.data(), begin.data(), MPI_ORDER_C, MPI_DOUBLE,
                           &face);
  MPI_Type_commit(&face);
  std::vector<double> array(static_cast<std::size_t>(n) * n * n), copy(array.size(), -1),
      expected = copy;
  for (std::size_t i = 0; i < array.size(); ++i) array[i] = static_cast<double>(i % 1000);
  try {
    const auto made = dtype::make_plan(face);
    const auto* const plan = std::get_if<dtype::PackPlan>(&made);
    if (plan == nullptr) throw ConfigError(std::get<UnsupportedDatatype>(made).what());
    const dtype::HostPacker packer;
    const auto bytes = static_cast<std::size_t>(plan->packed_bytes(1));
    std::vector<std::byte> packed(bytes), by_mpi(bytes);
    const double ours = time(repetitions, [&] {
      packer.pack(*plan, array.data(), 1, packed.data());
      packer.unpack(*plan, packed.data(), copy.data(), 1);
    });
    const int size = static_cast<int>(bytes);
    const double theirs = time(repetitions, [&] {
      int position = 0;
      MPI_Pack(array.data(), 1, face, by_mpi.data(), size, &position, MPI_COMM_WORLD);
      position = 0;
      MPI_Unpack(by_mpi.data(), size, &position, expected.data(), 1, face, MPI_COMM_WORLD);
    });
    failed = packed != by_mpi || copy != expected ? 1 : 0;
    if (rank == 0)
      std::printf("%zu bytes, checksum %lx %s by MPI_Pack, %.2f x as fast as there\n", bytes,
                  checksum_of(packed), failed == 0 ? "as" : "NOT as", theirs / ours);
  } catch (const Error& error) {
    std::fprintf(stderr, "pack_only: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MPI_Type_free(&face);
  MPI_Finalize();
  return failed;
}
