/* SPDX-License-Identifier: BSD-3-Clause
 * Does Jacobi steps for Laplace's equation in a periodic box, once with Halocline and once with
 * plain MPI. Two arrays are swapped in each step, so each array has its own plan.
 *   mpirun -n 4 jacobi_c [POINTS [STEPS]] */
#include <halocline.h>
#include <stdio.h>
#include <stdlib.h>

static int n = 64, stored, steps = 20; /* owned points per axis; with ghosts */
static MPI_Comm cart;
static MPI_Datatype sent[6], received[6]; /* face / 2: axis; odd faces: above */
static int partner[6];
static long at(int z, int y, int x) {
  return ((long)z * stored + y) * stored + x;
}

/* Stops with the reason of an error. */
static void check(int code) {
  if (code == HALOCLINE_SUCCESS) return;
  fprintf(stderr, "jacobi_c: %s\n", halocline_last_error());
  MPI_Abort(MPI_COMM_WORLD, code);
}

static void make_faces(void) {
  const int sizes[3] = {stored, stored, stored};
  for (int face = 0; face < 6; ++face) {
    int extent[3] = {n, n, n}, start[3] = {1, 1, 1}, below, above;
    const int axis = face / 2, is_above = face % 2;
    extent[axis] = 1, start[axis] = is_above ? n : 1;
    MPI_Type_create_subarray(3, sizes, extent, start, MPI_ORDER_C, MPI_DOUBLE, &sent[face]);
    MPI_Type_commit(&sent[face]);
    start[axis] = is_above ? n + 1 : 0;
    MPI_Type_create_subarray(3, sizes, extent, start, MPI_ORDER_C, MPI_DOUBLE, &received[face]);
    MPI_Type_commit(&received[face]);
    MPI_Cart_shift(cart, axis, 1, &below, &above);
    partner[face] = is_above ? above : below;
  }
}

/* A message to the partner above fills the partner's ghosts below: tags are the sender's face. */
static halocline_plan plan_of(double* u) {
  halocline_plan plan;
  halocline_message send[6], receive[6];
  for (int face = 0; face < 6; ++face) {
    send[face] = (halocline_message){u, 1, sent[face], partner[face], face, 0};
    receive[face] = (halocline_message){u, 1, received[face], partner[face], face ^ 1, 0};
  }
  check(halocline_plan_create(cart, "auto", 6, send, 6, receive, NULL, &plan));
  return plan;
}

static void exchange_by_mpi(double* u) {
  MPI_Request requests[12];
  for (int face = 0; face < 6; ++face)
    MPI_Irecv(u, 1, received[face], partner[face], face ^ 1, cart, &requests[face]);
  for (int face = 0; face < 6; ++face)
    MPI_Isend(u, 1, sent[face], partner[face], face, cart, &requests[6 + face]);
  MPI_Waitall(12, requests, MPI_STATUSES_IGNORE);
}

/* Returns the checksum after all steps. Lowers `*seconds` to those of the fastest exchange. */
static double solve(double* u[2], const halocline_plan* plans, double* seconds) {
  int rank;
  MPI_Comm_rank(cart, &rank);
  for (long i = 0; i < (long)stored * stored * stored; ++i)
    u[0][i] = (double)((i * 7919 + rank * 104729) % 1000);
  for (int step = 0; step < steps; ++step) {
    double *const now = u[step % 2], *const next = u[1 - step % 2];
    MPI_Barrier(cart);
    const double begin = MPI_Wtime();
    if (plans == NULL) {
      exchange_by_mpi(now);
    } else {
      check(halocline_start(plans[step % 2]));
      check(halocline_finish(plans[step % 2]));
    }
    const double time = MPI_Wtime() - begin;
    if (time < *seconds) *seconds = time;
    for (int z = 1; z <= n; ++z)
      for (int y = 1; y <= n; ++y)
        for (int x = 1; x <= n; ++x)
          next[at(z, y, x)] = (now[at(z - 1, y, x)] + now[at(z + 1, y, x)] + now[at(z, y - 1, x)] +
                               now[at(z, y + 1, x)] + now[at(z, y, x - 1)] + now[at(z, y, x + 1)]) /
                              6;
  }
  double sum = 0, all = 0;
  for (int z = 1; z <= n; ++z)
    for (int y = 1; y <= n; ++y)
      for (int x = 1; x <= n; ++x) sum += u[steps % 2][at(z, y, x)] * (1 + (z + y + x) % 7);
  MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, cart);
  return all;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc > 1) n = atoi(argv[1]);
  if (argc > 2) steps = atoi(argv[2]);
  stored = n + 2;
  int ranks, rank, grid[3] = {0, 0, 0}, periodic[3] = {1, 1, 1};
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Dims_create(ranks, 3, grid);
  MPI_Cart_create(MPI_COMM_WORLD, 3, grid, periodic, 0, &cart);
  MPI_Comm_rank(cart, &rank);
  make_faces();
  void* memory = NULL; /* of both arrays; neighbours on the node reach it */
  const int64_t points = (int64_t)stored * stored * stored;
  check(halocline_alloc(cart, 2 * points * (int64_t)sizeof(double), &memory));
  double* u[2] = {memory, (double*)memory + points};
  halocline_plan plans[2] = {plan_of(u[0]), plan_of(u[1])};
  double ours = 1e9, theirs = 1e9; /* seconds */
  const double checksum = solve(u, plans, &ours), twin = solve(u, NULL, &theirs);
  if (rank == 0)
    printf("%d ranks, checksum %.17g %s by plain MPI, exchange %.2f x as fast as there\n", ranks,
           checksum, checksum == twin ? "as" : "NOT as", theirs / ours);
  for (int i = 0; i < 2; ++i) check(halocline_plan_free(&plans[i]));
  check(halocline_free(&memory));
  MPI_Finalize();
  return rank == 0 && checksum != twin;
}
