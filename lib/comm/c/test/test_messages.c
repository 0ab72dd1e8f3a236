/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests single messages: in a ring, short and long ones, with wildcards, and wrong use. */
#include "checks.h"

enum { kShort = 100, kLong = 200000, kStride = 3 };

static double *field, *copy;

static void reset(void) {
  for (int i = 0; i < kLong * kStride; ++i) field[i] = rank * 1e6 + i, copy[i] = -1;
}

/* Returns the number of wrong elements of `copy`, which got every third element of `from`. */
static int wrong_of(int from, int number) {
  int wrong = 0;
  for (int i = 0; i < kLong * kStride; ++i)
    wrong += copy[i] != (i % kStride == 0 && i < number * kStride ? from * 1e6 + i : -1);
  return wrong;
}

static void test_ring(halocline_messages messages, int number) {
  MPI_Datatype column;
  MPI_Type_vector(number, 1, kStride, MPI_DOUBLE, &column);
  const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
  halocline_request sent = NULL, received = NULL;
  halocline_status status = {-7, -7, -7};
  reset();
  EXPECT(halocline_isend(messages, field, 1, column, right, 5, &sent) == 0 && sent != NULL);
  EXPECT(halocline_recv(messages, copy, 1, column, left, 5, &status) == 0);
  EXPECT(wrong_of(left, number) == 0);
  EXPECT(status.source == left && status.tag == 5 && status.bytes == number * 8);
  EXPECT(halocline_wait(&sent, NULL) == 0 && sent == NULL);

  reset();
  EXPECT(halocline_irecv(messages, copy, 1, column, MPI_ANY_SOURCE, MPI_ANY_TAG, &received) == 0);
  EXPECT(halocline_send(messages, field, 1, column, right, rank) == 0);
  const halocline_request waited = received;
  EXPECT(halocline_wait(&received, &status) == 0 && received == NULL);
  EXPECT(wrong_of(left, number) == 0);
  EXPECT(status.source == left && status.tag == left && status.bytes == number * 8);
  halocline_request again = waited;
  EXPECT_WRONG(halocline_wait(&again, &status), "was freed");
  EXPECT(halocline_wait(&received, &status) == 0); /* NULL is no message */
  EXPECT(status.source == MPI_PROC_NULL && status.tag == MPI_ANY_TAG && status.bytes == 0);
  MPI_Type_free(&column);
}

static void test_errors(halocline_messages messages) {
  const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
  halocline_request request, other;
  halocline_status status;
  EXPECT_WRONG(halocline_send(NULL, field, 1, MPI_DOUBLE, 0, 0), "is NULL");
  EXPECT_WRONG(halocline_send(messages, NULL, 1, MPI_DOUBLE, right, 0), "buffer is NULL");
  EXPECT_WRONG(halocline_send(messages, field, -1, MPI_DOUBLE, right, 0), "negative");
  EXPECT_WRONG(halocline_send(messages, field, 1, MPI_DATATYPE_NULL, right, 0), "NULL");
  EXPECT_WRONG(halocline_send(messages, field, 1, MPI_DOUBLE, ranks, 0), "there is no rank");
  EXPECT_WRONG(halocline_send(messages, field, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 0), "no rank");
  EXPECT_WRONG(halocline_send(messages, field, 1, MPI_DOUBLE, right, -3), "there is no tag");
  EXPECT_WRONG(halocline_recv(messages, copy, 1, MPI_DOUBLE, ranks, 0, NULL), "MPI_ANY_SOURCE");
  EXPECT_WRONG(halocline_isend(messages, field, 1, MPI_DOUBLE, right, 0, NULL), "`request`");
  EXPECT_WRONG(halocline_irecv(messages, copy, 1, MPI_DOUBLE, -9, 0, &request), "no rank");
  EXPECT(request == NULL);
  EXPECT_WRONG(halocline_wait(NULL, NULL), "`request` is NULL");
  EXPECT(halocline_send(messages, NULL, 0, MPI_DOUBLE, MPI_PROC_NULL, 0) == 0);
  EXPECT(halocline_recv(messages, NULL, 0, MPI_DOUBLE, MPI_PROC_NULL, 0, &status) == 0);
  EXPECT(status.source == MPI_PROC_NULL && status.bytes == 0);

  /* A message that is too long for its receive. */
  EXPECT(halocline_isend(messages, field, 3, MPI_DOUBLE, right, 1, &request) == 0);
  EXPECT_WRONG(halocline_recv(messages, copy, 2, MPI_DOUBLE, left, 1, NULL), "larger count");
  EXPECT(halocline_wait(&request, NULL) == 0);
  EXPECT(halocline_isend(messages, field, 3, MPI_DOUBLE, right, 1, &request) == 0);
  EXPECT(halocline_irecv(messages, copy, 2, MPI_DOUBLE, left, 1, &other) == 0);
  EXPECT_WRONG(halocline_wait(&other, NULL), "larger count");
  EXPECT(other == NULL);
  EXPECT(halocline_wait(&request, NULL) == 0);

  /* An engine with messages under way stays. Rank 0 alone has one. */
  if (rank == 0) EXPECT(halocline_irecv(messages, copy, 1, MPI_DOUBLE, 0, 9, &request) == 0);
  halocline_messages kept = messages;
  EXPECT_WRONG(halocline_messages_free(&kept), "call halocline_wait()");
  EXPECT(kept == messages);
  if (rank == 0) {
    EXPECT(halocline_send(messages, field, 1, MPI_DOUBLE, 0, 9) == 0);
    EXPECT(halocline_wait(&request, &status) == 0 && status.bytes == 8);
  }
  EXPECT_WRONG(halocline_messages_create(MPI_COMM_NULL, &kept), "MPI_COMM_NULL");
  kept = messages;
  EXPECT_WRONG(halocline_messages_create(MPI_COMM_WORLD, rank == 0 ? NULL : &kept), "`messages`");
  EXPECT_WRONG(halocline_messages_free(NULL), "`messages` is NULL");
}

void test_messages(void) {
  field = malloc(kLong * kStride * sizeof(double));
  copy = malloc(kLong * kStride * sizeof(double));
  halocline_messages messages = NULL;
  EXPECT(halocline_messages_create(MPI_COMM_WORLD, &messages) == 0);
  test_ring(messages, kShort);
  test_ring(messages, kLong);
  test_errors(messages);
  const halocline_messages freed = messages;
  EXPECT(halocline_messages_free(&messages) == 0 && messages == NULL);
  EXPECT(halocline_messages_free(&messages) == 0);
  EXPECT_WRONG(halocline_send(freed, field, 1, MPI_DOUBLE, 0, 0), "was freed");
  free(field);
  free(copy);
}
