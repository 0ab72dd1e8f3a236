/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs with a library whose structs have grown since this program was compiled: CMakeLists.txt
 * makes a header without their last members. */
#include "checks.h"

int rank, ranks, mistakes;

void expect(int holds, const char* what, int line) {
  if (holds) return;
  ++mistakes;
  fprintf(stderr, "rank %d, line %d: not true: %s (%s)\n", rank, line, what,
          halocline_last_error());
}

int main(int argc, char** argv) {
  enum { kOwned = 4 };
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  double u[2][1 + kOwned];
  const int periodic = 1;
  MPI_Comm ring;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &ring);
  halocline_field fields[2];
  memset(fields, 0, sizeof fields);
  for (int i = 0; i < 2; ++i) {
    fields[i].size = sizeof *fields;
    fields[i].element = MPI_DOUBLE;
    fields[i].order = MPI_ORDER_C;
    u[i][0] = -1;
    for (int x = 0; x < kOwned; ++x) u[i][1 + x] = 100 * i + 10 * rank + x;
    fields[i].buffer = u[i];
    fields[i].owned[0] = kOwned;
    fields[i].low[0] = 1;
  }
  halocline_plan_options options = {sizeof options, 0};
  halocline_plan_info info;
  info.size = sizeof info;
  halocline_plan plan;
  EXPECT(halocline_halo_create(ring, "p2p", 2, fields, 1, &options, &plan) == 0);
  EXPECT(halocline_start(plan) == 0 && halocline_finish(plan) == 0);
  for (int i = 0; i < 2; ++i)
    EXPECT(u[i][0] == 100 * i + 10 * ((rank + ranks - 1) % ranks) + kOwned - 1);
  EXPECT(halocline_plan_inform(plan, &info) == 0);
  EXPECT(info.bytes_to_others + info.bytes_to_self == 2 * (int64_t)sizeof(double));
  EXPECT(halocline_plan_free(&plan) == 0);
  MPI_Comm_free(&ring);
  MPI_Allreduce(MPI_IN_PLACE, &mistakes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) puts(mistakes == 0 ? "passed" : "FAILED");
  MPI_Finalize();
  return mistakes == 0 ? 0 : 1;
}
