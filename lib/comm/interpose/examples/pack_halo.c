/* SPDX-License-Identifier: BSD-3-Clause
   Packs, unpacks and exchanges parts of a block of 128^3 doubles, described by derived types.
   Exchanges by MPI_Isend and, in turns, by PMPI_Isend, which leaves out a library in front of MPI.
   Checks what arrived. It is an ordinary MPI program that knows nothing of Halocline.

     mpicc -O2 pack_halo.c -o pack_halo
     mpirun -n 2 pack_halo
     mpirun -n 2 -x LD_PRELOAD=$PWD/build/release/lib/libhalocline_mpi.so pack_halo */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 128, RADIUS = 3, STORED = N + 2 * RADIUS, TIMES = 200 };
#define POINTS (STORED * STORED * STORED)
static double field[POINTS], ghost[POINTS];

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}
static double median(double* values) {
  qsort(values, TIMES, sizeof *values, compare);
  return values[TIMES / 2];
}

static MPI_Datatype box(int z, int y, int x) {
  const int sizes[] = {STORED, STORED, STORED}, subsizes[] = {z, y, x},
            starts[] = {RADIUS, RADIUS, RADIUS};
  MPI_Datatype type;
  MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
  return type;
}
/* Returns a type of single points in each row, as for particles near a boundary. */
static MPI_Datatype scattered(void) {
  static int places[N * N / 4];
  int count = 0;
  for (int y = 0; y < N; ++y)
    for (int x = 0; x < N / 4; ++x) places[count++] = y * STORED + 4 * x + (x * 7 + y * 3) % 3;
  MPI_Datatype type;
  MPI_Type_create_indexed_block(count, 1, places, MPI_DOUBLE, &type);
  return type;
}

/* Adds the ghosts to `sum`. Returns the number of wrong points: those of `type` must be rank
 * `from`'s, and no other point may be written. */
static int wrong_points(MPI_Datatype type, int from, double* sum) {
  int bytes, written = 0, wrong = 0;
  MPI_Type_size(type, &bytes);
  for (int i = 0; i < POINTS; ghost[i++] = -1)
    if (ghost[i] != -1) {
      ++written, *sum += ghost[i];
      wrong += ghost[i] != i + 0.25 * from;
    }
  return wrong + abs(written - bytes / (int)sizeof *ghost);
}

/* Exchanges by MPI_Isend and so on, or by PMPI_Isend. Returns the time. */
#define EXCHANGE(MPI)                                                                   \
  (start = MPI_Wtime(), MPI##_Irecv(ghost, 1, type, from, 0, MPI_COMM_WORLD, requests), \
   MPI##_Isend(field, 1, type, to, 0, MPI_COMM_WORLD, requests + 1),                    \
   MPI##_Waitall(2, requests, MPI_STATUSES_IGNORE), MPI_Wtime() - start)

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
  for (int i = 0; i < POINTS; ++i) field[i] = i + 0.25 * rank, ghost[i] = -1;
  const struct {
    const char* name;
    MPI_Datatype type;
  } parts[] = {{"x face, rows of 24 bytes", box(N, N, RADIUS)},
               {"y face, rows of 1 KiB", box(N, RADIUS, N)},
               {"z face", box(RADIUS, N, N)},
               {"edge along z", box(N, RADIUS, RADIUS)},
               {"corner", box(RADIUS, RADIUS, RADIUS)},
               {"scattered doubles", scattered()}};
  int wrong = 0;
  double packs = 0, sums[] = {0, 0}; /* of what PMPI and MPI exchanged */
  if (rank == 0)
    printf("%-26s %9s %10s %12s %14s %18s\n", "part", "bytes", "pack, us", "unpack, us",
           "exchange, us", "x as fast as PMPI");
  for (size_t p = 0; p < sizeof parts / sizeof *parts; ++p) {
    MPI_Datatype type = parts[p].type;
    MPI_Type_commit(&type);
    int bytes, position;
    MPI_Pack_size(1, type, MPI_COMM_WORLD, &bytes);
    void* const packed = malloc(bytes);
    double pack[TIMES], unpack[TIMES], exchange[2][TIMES], start;
    for (int i = 0; i < TIMES; ++i) {
      position = 0, start = MPI_Wtime();
      MPI_Pack(field, 1, type, packed, bytes, &position, MPI_COMM_WORLD);
      pack[i] = MPI_Wtime() - start;
      position = 0, start = MPI_Wtime();
      MPI_Unpack(packed, bytes, &position, ghost, 1, type, MPI_COMM_WORLD);
      unpack[i] = MPI_Wtime() - start;
    }
    wrong += wrong_points(type, rank, &packs);
    for (int i = 0; i < 2 * TIMES; ++i) {
      MPI_Request requests[2];
      MPI_Barrier(MPI_COMM_WORLD);
      exchange[i % 2][i / 2] = i % 2 ? EXCHANGE(MPI) : EXCHANGE(PMPI);
      if (i / 2 == TIMES - 1) wrong += wrong_points(type, from, &sums[i % 2]);
    }
    if (rank == 0)
      printf("%-26s %9d %10.2f %12.2f %14.2f %18.2f\n", parts[p].name, position, 1e6 * median(pack),
             1e6 * median(unpack), 1e6 * median(exchange[1]),
             median(exchange[0]) / median(exchange[1]));
    MPI_Type_free(&type);
    free(packed);
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0)
    printf("checksum %.2f, by PMPI %.2f: %s\n", sums[1], sums[0],
           wrong == 0 && sums[0] == sums[1] ? "all points are right" : "SOME POINTS ARE WRONG");
  MPI_Finalize();
  return wrong != 0 || sums[0] != sums[1];
}
