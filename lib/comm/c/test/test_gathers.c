/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests gathers, scatters and allgathers: equal and unequal blocks, strided types, blocks in place,
 * and wrong use. */
#include "checks.h"

enum { kMost = 8, kRanks = 8, kStride = 2 };

static MPI_Comm comm;
static MPI_Datatype pair, strided; /* two doubles; the same with a gap behind each */
static double own[kMost], all[kRanks * kMost * kStride];

static double value(int of, int i, int step) {
  return 100.0 * of + i + 0.25 * step;
}

/* Returns how many pairs a rank contributes. */
static int number_of(int of, int is_equal) {
  return is_equal ? 3 : 1 + of % 3;
}

/* Writes all blocks, each behind the one before, with gaps of -1. `of` >= 0: this block alone. */
static void fill(double* to, int of, int is_equal, int step) {
  int at = 0;
  for (int i = 0; i < kRanks * kMost * kStride; ++i) to[i] = -1;
  for (int r = 0; r < ranks; ++r)
    for (int i = 0; i < 2 * number_of(r, is_equal); ++i, at += kStride)
      if (of < 0 || of == r) to[at] = value(r, i, step);
}

static int has_all(int is_equal, int step) {
  double wanted[kRanks * kMost * kStride];
  fill(wanted, -1, is_equal, step);
  return memcmp(all, wanted, sizeof wanted) == 0;
}

static void test_kinds(int is_equal, int is_in_place) {
  const int root = ranks - 1, number = number_of(rank, is_equal), is_root = rank == root;
  int64_t numbers[kRanks];
  for (int r = 0; r < ranks; ++r) numbers[r] = number_of(r, is_equal);
  const int64_t* const counts = is_equal ? NULL : numbers;
  void* const at_root = is_in_place && is_root ? MPI_IN_PLACE : own;
  halocline_collective gather, scatter, allgather;
  EXPECT(halocline_gather_create(comm, at_root, number, pair, is_root ? all : NULL,
                                 is_root ? counts : NULL, is_root ? strided : MPI_DATATYPE_NULL,
                                 root, &gather) == 0);
  EXPECT(halocline_scatter_create(comm, at_root, number, pair, is_root ? all : NULL,
                                  is_root ? counts : NULL, is_root ? strided : MPI_DATATYPE_NULL,
                                  root, &scatter) == 0);
  EXPECT(halocline_allgather_create(comm, is_in_place ? MPI_IN_PLACE : own, number, pair, all,
                                    counts, strided, &allgather) == 0);
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < 2 * number; ++i) own[i] = value(rank, i, step);
    fill(all, is_in_place ? rank : ranks, is_equal, step);
    EXPECT(halocline_run(gather) == 0);
    if (is_root) EXPECT(has_all(is_equal, step));

    fill(all, is_in_place ? rank : ranks, is_equal, step);
    EXPECT(halocline_run(allgather) == 0);
    EXPECT(has_all(is_equal, step));

    for (int i = 0; i < kMost; ++i) own[i] = -1;
    EXPECT(halocline_run(scatter) == 0);
    const int is_left = is_in_place && is_root;
    for (int i = 0; i < kMost; ++i)
      EXPECT(own[i] == (i < 2 * number && !is_left ? value(rank, i, step) : -1));
    EXPECT(has_all(is_equal, step));
  }
  const halocline_collective freed = gather;
  EXPECT(halocline_collective_free(&gather) == 0 && gather == NULL);
  EXPECT(halocline_collective_free(&gather) == 0);
  EXPECT_WRONG(halocline_run(freed), "was freed");
  EXPECT_WRONG(halocline_run(gather), "is NULL");
  EXPECT(halocline_collective_free(&scatter) == 0 && halocline_collective_free(&allgather) == 0);
}

/* One rank alone is wrong. */
static void test_errors(void) {
  const int is_last = rank == ranks - 1;
  halocline_collective made;
#define GATHER(buffer, count, type, root_buffer, counts, root_type, root) \
  halocline_gather_create(comm, buffer, count, type, root_buffer, counts, root_type, root, &made)
  EXPECT_WRONG(GATHER(own, 1, MPI_DOUBLE, all, NULL, MPI_DOUBLE, is_last ? ranks : 0),
               "no such root");
  if (ranks > 1)
    EXPECT_WRONG(GATHER(own, 1, MPI_DOUBLE, all, NULL, MPI_DOUBLE, is_last), "the root differs");
  EXPECT(made == NULL);
  EXPECT_WRONG(GATHER(own, is_last ? -1 : 1, MPI_DOUBLE, all, NULL, MPI_DOUBLE, 0), "negative");
  EXPECT_WRONG(GATHER(is_last ? NULL : own, 1, MPI_DOUBLE, all, NULL, MPI_DOUBLE, 0), "buffer");
  EXPECT_WRONG(GATHER(own, 1, is_last ? MPI_DATATYPE_NULL : MPI_DOUBLE, all, NULL, MPI_DOUBLE, 0),
               "MPI_DATATYPE_NULL");
  EXPECT_WRONG(GATHER(own, 1, MPI_DOUBLE, NULL, NULL, MPI_DOUBLE, 0), "buffer");
  EXPECT_WRONG(GATHER(own, 1, MPI_DOUBLE, all, NULL, MPI_DATATYPE_NULL, 0), "MPI_DATATYPE_NULL");
  int64_t counts[kRanks];
  for (int r = 0; r < ranks; ++r) counts[r] = r == ranks - 1 ? 2 : 1;
  EXPECT_WRONG(GATHER(own, 1, MPI_DOUBLE, all, counts, MPI_DOUBLE, 0), "give the same");
  counts[ranks - 1] = -1;
  EXPECT_WRONG(GATHER(own, 1, MPI_DOUBLE, all, counts, MPI_DOUBLE, 0), "negative");
  if (ranks > 1)
    EXPECT_WRONG(GATHER(is_last ? MPI_IN_PLACE : own, 1, MPI_DOUBLE, all, NULL, MPI_DOUBLE, 0),
                 "MPI_IN_PLACE");
  EXPECT_WRONG(
      halocline_gather_create(MPI_COMM_NULL, own, 1, MPI_DOUBLE, all, NULL, MPI_DOUBLE, 0, &made),
      "MPI_COMM_NULL");
  EXPECT_WRONG(halocline_scatter_create(comm, own, is_last ? 2 : 1, MPI_DOUBLE, all,
                                        ranks > 1 ? NULL : counts, MPI_DOUBLE, 0, &made),
               ranks > 1 ? "elements" : "negative");
  EXPECT_WRONG(halocline_allgather_create(comm, own, 1, MPI_DOUBLE, is_last ? NULL : all, NULL,
                                          MPI_DOUBLE, &made),
               "buffer");
  if (ranks > 1) /* the counts of the last rank differ from those of the other ranks */
    EXPECT_WRONG(halocline_allgather_create(comm, own, is_last ? 2 : 1, MPI_DOUBLE, all, NULL,
                                            MPI_DOUBLE, &made),
                 "the same counts");
  EXPECT_WRONG(halocline_allgather_create(comm, own, 1, MPI_DOUBLE, all, NULL, MPI_DOUBLE,
                                          is_last ? NULL : &made),
               "address of a handle");
  EXPECT_WRONG(halocline_collective_free(NULL), "address of a handle");
#undef GATHER
}

void test_gathers(void) {
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Datatype gap;
  MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
  MPI_Type_create_resized(MPI_DOUBLE, 0, kStride * (MPI_Aint)sizeof(double), &gap);
  MPI_Type_contiguous(2, gap, &strided);
  MPI_Type_free(&gap);
  for (int is_equal = 0; is_equal < 2; ++is_equal)
    for (int is_in_place = 0; is_in_place < 2; ++is_in_place) test_kinds(is_equal, is_in_place);
  test_errors();
  /* A collective may outlive its communicator. */
  halocline_collective gather;
  EXPECT(halocline_gather_create(comm, own, 1, MPI_DOUBLE, all, NULL, MPI_DOUBLE, 0, &gather) == 0);
  MPI_Comm_free(&comm);
  MPI_Type_free(&strided);
  MPI_Type_free(&pair);
  own[0] = rank;
  EXPECT(halocline_run(gather) == 0);
  if (rank == 0)
    for (int r = 0; r < ranks; ++r) EXPECT(all[r] == r);
  EXPECT(halocline_collective_free(&gather) == 0);
}
