/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests halocline.h with two threads, each of which has a communicator, memory and plans of its
 * own. All numbers must come from the same thread of the neighbour. */
#include <pthread.h>

#include "checks.h"

int rank, ranks, mistakes;

enum { kThreads = 2, kRounds = 30, kBytes = 1 << 16 };

static pthread_barrier_t all_threads;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void expect(int holds, const char* what, int line) {
  if (holds) return;
  pthread_mutex_lock(&mutex);
  ++mistakes;
  fprintf(stderr, "rank %d, line %d: %s; the last error: %s\n", rank, line, what,
          halocline_last_error());
  pthread_mutex_unlock(&mutex);
}

static char mark(int of, int thread, int round) {
  return (char)(1 + of + 4 * thread + round % 16 * 8);
}

static MPI_Comm comms[kThreads];

static void* exchange(void* number) {
  const int thread = *(const int*)number;
  const int left = (rank + ranks - 1) % ranks;
  for (int round = 0; round < kRounds; ++round) {
    pthread_barrier_wait(&all_threads); /* both allocate at the same time */
    void* memory = NULL;
    EXPECT(halocline_alloc(comms[thread], 2 * kBytes, &memory) == 0);
    if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    char *const own = memory, *const ghost = own + kBytes;
    memset(own, mark(rank, thread, round), kBytes);
    memset(ghost, 0, kBytes);
    const halocline_message send = {own, kBytes, MPI_BYTE, (rank + 1) % ranks, 0, 0};
    const halocline_message receive = {ghost, kBytes, MPI_BYTE, left, 0, 0};
    halocline_plan plan = NULL;
    const char* const method = ranks > 1 && round % 2 == 0 ? "shared" : "auto";
    pthread_barrier_wait(&all_threads); /* both have memory when they make plans */
    EXPECT(halocline_plan_create(comms[thread], method, 1, &send, 1, &receive, NULL, &plan) == 0);
    int wrong = plan == NULL;
    if (plan != NULL) EXPECT(halocline_start(plan) == 0 && halocline_finish(plan) == 0);
    for (int i = 0; i < kBytes && plan != NULL; ++i) wrong += ghost[i] != mark(left, thread, round);
    EXPECT(wrong == 0);
    EXPECT(halocline_plan_free(&plan) == 0);
    MPI_Barrier(comms[thread]); /* `shared` reads the neighbour's memory */
    EXPECT(halocline_free(&memory) == 0);
  }
  return NULL;
}

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  EXPECT(provided == MPI_THREAD_MULTIPLE);
  pthread_t threads[kThreads];
  int numbers[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    numbers[i] = i;
  }
  pthread_barrier_init(&all_threads, NULL, kThreads);
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, exchange, &numbers[i]);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < kThreads; ++i) MPI_Comm_free(&comms[i]);
  MPI_Allreduce(MPI_IN_PLACE, &mistakes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return mistakes == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
