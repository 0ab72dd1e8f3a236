/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the halos of Cartesian communicators: 2-D fields on a grid that is periodic along axis 0.
 * test_cart_halo.cpp has the other cases. */
#include "checks.h"

enum { kRows = 4, kColumns = 5, kStored = (kRows + 2) * (kColumns + 2) };

static MPI_Comm cart;
static int grid[2], here[2];

/* Returns the number of a point of the whole grid; -1 beyond an open side. */
static double number_of(int row, int column) {
  const int all = kRows * grid[0];
  row = (row + kRows * here[0] + all) % all;
  column += kColumns * here[1];
  return column < 0 || column >= kColumns * grid[1] ? -1 : row * 1000.0 + column;
}

/* Writes what is in a field before an exchange, or after it. */
static void fill(double* field, int with_faces, int with_corners) {
  for (int i = 0; i < kStored; ++i) {
    const int row = i / (kColumns + 2) - 1, column = i % (kColumns + 2) - 1;
    const int outside = (row < 0 || row >= kRows) + (column < 0 || column >= kColumns);
    const int is_filled = outside == 0 || (outside == 1 && with_faces) || with_corners;
    field[i] = is_filled ? number_of(row, column) : -1;
  }
}

static int is_filled(const double* field, int with_faces, int with_corners) {
  double wanted[kStored];
  fill(wanted, with_faces, with_corners);
  return memcmp(field, wanted, sizeof wanted) == 0;
}

static halocline_field field_at(double* buffer, double* swapped) {
  halocline_field out = HALOCLINE_FIELD;
  out.buffer = buffer;
  out.swapped = swapped;
  out.owned[0] = kRows, out.owned[1] = kColumns;
  for (int axis = 0; axis < 2; ++axis) out.low[axis] = out.high[axis] = 1;
  return out;
}

static void test_exchange(const char* method, double* memory, int most_axes) {
  double *const a = memory, *const b = memory + kStored, *const c = memory + 2 * kStored;
  const halocline_field fields[2] = {field_at(a, b), field_at(c, NULL)};
  halocline_plan plan = NULL;
  EXPECT(halocline_halo_create(cart, method, 2, fields, most_axes, NULL, &plan) == 0);
  if (plan == NULL) return;
  halocline_plan_info info = HALOCLINE_PLAN_INFO;
  EXPECT(halocline_plan_inform(plan, &info) == 0);
  EXPECT(info.messages < ranks);
  for (int step = 0; step < 4; ++step) {
    fill(a, 0, 0), fill(b, 0, 0), fill(c, 0, 0);
    MPI_Barrier(cart);
    EXPECT(halocline_start(plan) == 0);
    EXPECT_WRONG(halocline_swap(plan), "finish it first");
    for (int done = 0; !done;) EXPECT(halocline_test(plan, &done) == 0);
    EXPECT(is_filled(a, step % 2 == 0, step % 2 == 0 && most_axes == 2));
    EXPECT(is_filled(b, step % 2 == 1, step % 2 == 1 && most_axes == 2));
    EXPECT(is_filled(c, 1, most_axes == 2));
    MPI_Barrier(cart);
    EXPECT(halocline_swap(plan) == 0);
  }
  EXPECT(halocline_plan_free(&plan) == 0);
}

/* The last rank alone is wrong. */
static void test_errors(double* memory) {
  const int is_last = rank == ranks - 1;
  halocline_plan plan;
#define CREATE(comm, fields, field) \
  halocline_halo_create(comm, "p2p", fields, field, 1, NULL, &plan)
  const halocline_field right = field_at(memory, NULL);
  EXPECT_WRONG(CREATE(MPI_COMM_WORLD, 1, &right), "MPI_Cart_create");
  EXPECT_WRONG(CREATE(MPI_COMM_NULL, 1, &right), "MPI_COMM_NULL");
  EXPECT_WRONG(CREATE(cart, is_last ? -1 : 1, &right), "negative");
  EXPECT_WRONG(CREATE(cart, 1, is_last ? NULL : &right), "array of fields is NULL");
  halocline_field wrong = right;
  if (is_last) wrong.buffer = NULL;
  EXPECT_WRONG(CREATE(cart, 1, &wrong), "field 0 has no buffer");
  EXPECT(plan == NULL);
  wrong = right;
  if (is_last) wrong.low[0] = kRows + 1;
  EXPECT_WRONG(CREATE(cart, 1, &wrong), "a neighbour needs");
  wrong = right;
  if (is_last) wrong.size = 0;
  EXPECT_WRONG(CREATE(cart, 1, &wrong), "halocline_field.size");
  const halocline_field two[2] = {right, wrong};
  EXPECT_WRONG(CREATE(cart, 2, two), "HALOCLINE_FIELD");
  wrong = right;
  if (is_last) wrong.high[1] = 0;
  if (ranks > 1) EXPECT_WRONG(CREATE(cart, 1, &wrong), "field 0 along axis 1");
  EXPECT(halocline_plan_create(cart, "p2p", 0, NULL, 0, NULL, NULL, &plan) == 0);
  EXPECT_WRONG(halocline_swap(plan), "halocline_halo_create");
  EXPECT(halocline_plan_free(&plan) == 0);
  EXPECT(CREATE(cart, 1, &right) == 0);
  EXPECT_WRONG(halocline_swap(plan), "no field of this halo has a second array");
  EXPECT(halocline_plan_free(&plan) == 0);
  EXPECT_WRONG(halocline_swap(plan), "is NULL");
  EXPECT_WRONG(halocline_halo_create(cart, "p2p", 0, NULL, 1, NULL, NULL), "`plan` is NULL");
#undef CREATE
}

/* A program with a longer struct than the library's. test_older.c has shorter ones. */
static void test_versions(double* memory) {
  struct {
    halocline_field known;
    int64_t unknown;
  } newer[2];
  halocline_plan plan;
  memset(newer, 0, sizeof newer);
  newer[0].known = newer[1].known = field_at(memory, NULL);
  newer[0].known.size = newer[1].known.size = sizeof newer[0];
  EXPECT_WRONG(halocline_halo_create(cart, "p2p", 2, &newer[0].known, 1, NULL, &plan),
               "as new as its header");
}

void test_halos(void) {
  const int periodic[2] = {1, 0};
  MPI_Dims_create(ranks, 2, grid);
  MPI_Cart_create(MPI_COMM_WORLD, 2, grid, periodic, 0, &cart);
  MPI_Cart_coords(cart, rank, 2, here);
  void* memory = NULL;
  EXPECT(halocline_alloc(cart, 3 * kStored * (int64_t)sizeof(double), &memory) == 0);
  static const char* const methods[] = {"auto", "p2p", "alltoallv", "shared", "vendor-neighbor"};
  for (size_t i = 0; i < sizeof methods / sizeof *methods; ++i)
    for (int axes = 1; axes <= 2; ++axes) test_exchange(methods[i], memory, axes);
  test_errors(memory);
  test_versions(memory);
  EXPECT(halocline_free(&memory) == 0);
  MPI_Comm_free(&cart);
}
