/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs with a later library. It was compiled with the header of version 0.1, and reads or writes
 * every member of that header's structs. */
#include "halocline_0_1.h"
/* It finds halocline.h included already. */
#include "checks.h"

enum { kOwned = 4 };
int rank, ranks, mistakes;
static int left, right;
static MPI_Comm ring;

void expect(int holds, const char* what, int line) {
  if (holds) return;
  ++mistakes;
  fprintf(stderr, "rank %d, line %d: not true: %s (%s)\n", rank, line, what,
          halocline_last_error());
}

/* Round 0 brings what is sent from the left, and round 1 what that rank got. */
static void test_plan(void) {
  int sent = 10 * rank, came[2] = {-1, -1};
  const halocline_message send[2] = {{&sent, 1, MPI_INT, right, 5, 0},
                                     {&came[0], 1, MPI_INT, right, 3, 1}};
  const halocline_message receive[2] = {{&came[0], 1, MPI_INT, left, 5, 0},
                                        {&came[1], 1, MPI_INT, left, 3, 1}};
  halocline_plan_options options = HALOCLINE_PLAN_OPTIONS;
  EXPECT(options.size == sizeof options && options.chunk_bytes == 1 << 20 && options.model == NULL);
  halocline_plan plan;
  EXPECT(halocline_plan_create(ring, "p2p", 2, send, 2, receive, &options, &plan) == 0);
  EXPECT(halocline_start(plan) == 0 && halocline_finish(plan) == 0);
  EXPECT(came[0] == 10 * left && came[1] == 10 * ((left + ranks - 1) % ranks));
  const int others = ranks > 1 ? 2 : 0, bytes = (int)sizeof(int);
  halocline_plan_info info = HALOCLINE_PLAN_INFO;
  EXPECT(halocline_plan_inform(plan, &info) == 0 && info.size == sizeof info);
  EXPECT(strcmp(info.method, "p2p") == 0 && strcmp(info.transfer, "host") == 0);
  EXPECT(info.predicted_seconds != info.predicted_seconds);
  EXPECT(info.messages == others && info.bytes_to_others == others * bytes);
  EXPECT(info.bytes_to_self == (2 - others) * bytes);
  EXPECT(halocline_plan_free(&plan) == 0 && plan == NULL);

  options.chunk_bytes = -7;
  EXPECT_WRONG(halocline_plan_create(ring, "p2p", 0, NULL, 0, NULL, &options, &plan), "-7");
  options.chunk_bytes = 0;
  options.model = "no-such-model";
  EXPECT(halocline_plan_create(ring, "p2p", 0, NULL, 0, NULL, &options, &plan) != 0);
  EXPECT(strstr(halocline_last_error(), "no-such-model") != NULL);
}

/* Checks the ghosts of a field whose owned points are `first` and the next integers on rank 0, and
 * 10 more on each next rank. Clears them for the next exchange. */
static void expect_ghosts(double* u, int first, int has_high) {
  EXPECT(u[0] == first + 10 * left + kOwned - 1);
  EXPECT(u[1 + kOwned] == (has_high ? first + 10 * right : -1));
  u[0] = u[1 + kOwned] = -1;
}

/* Exchanges the halos of two fields. Fields of an even older header end before `high`. */
static void test_halo(int has_high) {
  const size_t size = has_high ? sizeof(halocline_field) : offsetof(halocline_field, high);
  char* const memory = malloc(2 * size); /* without a byte to spare */
  double u[4][kOwned + 2];
  for (int i = 0; i < 4; ++i) {
    u[i][0] = u[i][1 + kOwned] = -1;
    for (int x = 0; x < kOwned; ++x) u[i][1 + x] = 100 * i + 10 * rank + x;
  }
  for (int i = 0; i < 2; ++i) {
    halocline_field field = HALOCLINE_FIELD;
    EXPECT(field.size == sizeof field && field.element == MPI_DOUBLE && field.order == MPI_ORDER_C);
    field.size = size;
    field.buffer = u[i];
    field.swapped = u[2 + i];
    field.order = MPI_ORDER_FORTRAN;
    field.owned[0] = kOwned;
    field.low[0] = 1;
    field.high[0] = 1;
    memcpy(memory + (size_t)i * size, &field, size);
  }
  halocline_plan plan;
  EXPECT(halocline_halo_create(ring, "p2p", 2, (const void*)memory, 1, NULL, &plan) == 0);
  free(memory);
  EXPECT(halocline_start(plan) == 0 && halocline_finish(plan) == 0);
  expect_ghosts(u[0], 0, has_high);
  expect_ghosts(u[1], 100, has_high);
  EXPECT(u[2][0] == -1 && halocline_swap(plan) == 0);
  EXPECT(halocline_start(plan) == 0 && halocline_finish(plan) == 0);
  expect_ghosts(u[2], 200, has_high);
  expect_ghosts(u[3], 300, has_high);
  EXPECT(u[0][0] == -1 && halocline_plan_free(&plan) == 0);
}

static void test_status(void) {
  halocline_messages messages;
  halocline_request request;
  halocline_status status = {-1, -1, -1};
  const int sent = rank;
  int came = -1;
  EXPECT(halocline_messages_create(ring, &messages) == 0);
  EXPECT(halocline_isend(messages, &sent, 1, MPI_INT, right, 9, &request) == 0);
  EXPECT(halocline_recv(messages, &came, 1, MPI_INT, left, 9, &status) == 0);
  EXPECT(halocline_wait(&request, NULL) == 0 && came == left);
  EXPECT(status.source == left && status.tag == 9 && status.bytes == (int64_t)sizeof(int));
  EXPECT(halocline_messages_free(&messages) == 0);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int periodic = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &ring);
  MPI_Cart_shift(ring, 0, 1, &left, &right);
  EXPECT(halocline_version() >= HALOCLINE_VERSION);
  test_plan();
  test_halo(1);
  test_halo(0);
  test_status();
  MPI_Comm_free(&ring);
  MPI_Allreduce(MPI_IN_PLACE, &mistakes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) puts(mistakes == 0 ? "passed" : "FAILED");
  MPI_Finalize();
  return mistakes == 0 ? 0 : 1;
}
