// SPDX-License-Identifier: BSD-3-Clause
// Tests a program whose receiver frees the request and is already in MPI_Finalize when the sender
// sends. It must end, as it does without the interposer.
#include <mpi.h>
#include <unistd.h>

#include <vector>

int main(int argc, char** argv) {
  constexpr int kBlocks = 100000;  // long enough that the send waits for its receive
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<int> memory(3 * kBlocks);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(kBlocks, 1, 3, MPI_INT, &type);
  MPI_Type_commit(&type);
  if (rank == 0) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(memory.data(), 1, type, 1, 0, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
  } else {
    usleep(300000);
    MPI_Send(memory.data(), 1, type, 0, 0, MPI_COMM_WORLD);
  }
  MPI_Type_free(&type);
  MPI_Finalize();
  return 0;
}
