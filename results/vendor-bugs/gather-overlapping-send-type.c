// SPDX-License-Identifier: BSD-3-Clause
// MPI_Gather of a type whose instances overlap in the send buffer, which MPI allows (only what is received must not overlap).
//   mpicc gather-overlapping-send-type.c && mpirun -n 4 a.out        exit code 1 if bytes are wrong
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { kInstances = 2, kRanks = 64 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  // Two ints, of which the second is the next instance's first.
  MPI_Datatype two, type;
  MPI_Type_contiguous(2, MPI_INT, &two);
  MPI_Type_create_resized(two, 0, sizeof(int), &type);
  MPI_Type_commit(&type);
  int sent[kInstances + 1], received[kRanks * kInstances * 2];
  for (int i = 0; i <= kInstances; ++i) sent[i] = 100 * rank + i;
  memset(received, 0xff, sizeof received);
  MPI_Gather(sent, kInstances, type, received, kInstances * 2, MPI_INT, 0, MPI_COMM_WORLD);
  for (int from = 0; rank == 0 && from < ranks && from < kRanks; ++from)
    for (int i = 0; i < kInstances * 2; ++i) {
      const int expected = 100 * from + i / 2 + i % 2, got = received[from * kInstances * 2 + i];
      if (got != expected) wrong += printf("element %d of rank %d is %d instead of %d\n", i, from, got, expected) > 0;
    }
  MPI_Bcast(&wrong, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Type_free(&type);
  MPI_Type_free(&two);
  MPI_Finalize();
  return wrong > 0;
}
