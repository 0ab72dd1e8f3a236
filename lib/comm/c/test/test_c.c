/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests halocline.h as a program in C uses it: exchanges by all methods, memory, packing, errors,
 * and options of an older and of a newer header. */
#define _XOPEN_SOURCE 600 /* for setrlimit() */
#include <sys/resource.h>
#include <unistd.h>

#include "checks.h"

int rank, ranks, mistakes;

void expect(int holds, const char* what, int line) {
  if (holds) return;
  ++mistakes;
  fprintf(stderr, "rank %d, line %d: %s; the last error: %s\n", rank, line, what,
          halocline_last_error());
}

enum { kNumber = 100, kStride = 3, kTags = 2 };

/* Exchanges columns with both neighbours of a ring. Messages: send[side], receive[side]. */
static void make_messages(double* field, MPI_Datatype column, halocline_message send[2],
                          halocline_message receive[2]) {
  for (int side = 0; side < 2; ++side) {
    const int partner = (rank + (side == 0 ? ranks - 1 : 1)) % ranks;
    const halocline_message out = {field + side, 1, column, partner, side, 0};
    const halocline_message in = {
        field + kNumber * kStride + side, 1, column, partner, 1 - side, 0};
    send[side] = out;
    receive[side] = in;
  }
}

static double value(int of, int i) {
  return 1000.0 * of + i;
}

static void test_exchange(const char* method, double* field, MPI_Datatype column) {
  halocline_message send[2], receive[2];
  make_messages(field, column, send, receive);
  halocline_plan plan = NULL;
  EXPECT(halocline_plan_create(MPI_COMM_WORLD, method, 2, send, 2, receive, NULL, &plan) == 0);
  if (plan == NULL) return;
  halocline_plan_info info = HALOCLINE_PLAN_INFO;
  EXPECT(halocline_plan_inform(plan, &info) == 0);
  if (strcmp(method, "auto") != 0) EXPECT(strcmp(info.method, method) == 0);
  EXPECT(info.predicted_seconds != info.predicted_seconds);
  EXPECT(info.bytes_to_self + info.bytes_to_others == 2 * 8 * kNumber);
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < kNumber * kStride; ++i) field[i] = value(rank, i) + step;
    for (int i = 0; i < kNumber * kStride; ++i) field[kNumber * kStride + i] = -1;
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT(halocline_start(plan) == 0);
    EXPECT(halocline_progress(plan) == 0);
    if (step == 0) {
      EXPECT(halocline_finish(plan) == 0);
    } else {
      for (int done = 0; !done;) EXPECT(halocline_test(plan, &done) == 0);
    }
    int wrong = 0;
    for (int i = 0; i < kNumber * kStride; ++i) {
      const int side = i % kStride;
      const double got = field[kNumber * kStride + i];
      const double wanted = side == 2 ? -1 : value(send[side].partner, i - side + 1 - side) + step;
      wrong += got != wanted;
    }
    EXPECT(wrong == 0);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  EXPECT_WRONG(halocline_finish(plan), "start it first");
  int done = 1;
  EXPECT_WRONG(halocline_test(plan, &done), "start it first");
  EXPECT(done == 0);
  EXPECT_WRONG(halocline_test(plan, NULL), "`done` is NULL");
  EXPECT(halocline_start(plan) == 0);
  EXPECT_WRONG(halocline_start(plan), "finish it first");
  const halocline_plan copy = plan;
  EXPECT(halocline_plan_free(&plan) == 0); /* completes the exchange */
  EXPECT(plan == NULL);
  EXPECT_WRONG(halocline_start(copy), "was freed");
  EXPECT_WRONG(halocline_start(plan), "is NULL");
  halocline_plan again = copy;
  EXPECT_WRONG(halocline_plan_free(&again), "was freed");
  EXPECT(halocline_plan_free(&plan) == 0);
}

/* Plans keep the memory that they use. Rank 0 uses it in messages, and the last rank by addresses
 * in a datatype. */
static void test_kept(const char* method, void** memory, MPI_Datatype column) {
  halocline_message send[2], receive[2];
  make_messages(*memory, column, send, receive);
  halocline_plan plan = NULL;
  MPI_Datatype absolute;
  MPI_Aint address;
  MPI_Get_address(send[0].buffer, &address);
  MPI_Type_create_hindexed_block(1, 1, &address, column, &absolute);
  if (rank == ranks - 1) send[0].buffer = MPI_BOTTOM, send[0].datatype = absolute;
  EXPECT(halocline_plan_create(MPI_COMM_WORLD, method, 2, send, 2, receive, NULL, &plan) == 0);
  MPI_Type_free(&absolute);
  double* const field = *memory;
  EXPECT(halocline_free(memory) == 0);
  EXPECT(*memory == NULL);
  if (plan == NULL) return;
  for (int i = 0; i < kNumber * kStride; ++i) field[i] = value(rank, i);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT(halocline_start(plan) == 0 && halocline_finish(plan) == 0);
  EXPECT(field[kNumber * kStride] == value(send[0].partner, 1));
  EXPECT(halocline_plan_free(&plan) == 0);
}

static void test_exchanges(void) {
  const int64_t bytes = 2 * kNumber * kStride * (int64_t)sizeof(double);
  MPI_Datatype column;
  MPI_Type_vector(kNumber, 1, kStride, MPI_DOUBLE, &column);
  double* const own = malloc((size_t)bytes);
  static const char* const methods[] = {"auto", "p2p", "alltoallv", "neighbor", "vendor-p2p"};
  for (size_t i = 0; i < sizeof methods / sizeof *methods; ++i)
    test_exchange(methods[i], own, column);

  void* memory = NULL;
  EXPECT(halocline_alloc(MPI_COMM_WORLD, bytes, &memory) == 0);
  EXPECT((uintptr_t)memory % 4096 == 0);
  test_exchange("shared", memory, column);
  test_exchange("auto", memory, column);

  void* const freed = memory;
  test_kept("shared", &memory, column);
  EXPECT(halocline_alloc(MPI_COMM_WORLD, bytes, &memory) == 0);
  test_kept("p2p", &memory, column);
  memory = freed;
  EXPECT_WRONG(halocline_free(&memory), "freed already");
  MPI_Type_free(&column);
  free(own);
}

/* halocline_alloc() gives ordinary memory where a node cannot share memory. A limit of addresses
 * forces this: of 8 MiB, ordinary memory needs 26 with its reserve for MPI, and a window 29.6. */
static void test_ordinary_memory(void) {
  enum { MIB = 1 << 20, BYTES = 8 * MIB };
  MPI_Datatype column;
  MPI_Type_vector(kNumber, 1, kStride, MPI_DOUBLE, &column);
  FILE* const file = fopen("/proc/self/statm", "r");
  long pages = 0;
  struct rlimit before, after;
  EXPECT(file != NULL && fscanf(file, "%ld", &pages) == 1);
  if (file != NULL) fclose(file);
  EXPECT(getrlimit(RLIMIT_AS, &before) == 0);
  after = before;
  after.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + BYTES + 20 * MIB;
  EXPECT(setrlimit(RLIMIT_AS, &after) == 0);
  void* memory = NULL;
  EXPECT(halocline_alloc(MPI_COMM_WORLD, BYTES, &memory) == 0);
  EXPECT(setrlimit(RLIMIT_AS, &before) == 0);
  if (memory != NULL) {
    halocline_message send[2], receive[2];
    make_messages(memory, column, send, receive);
    halocline_plan plan;
    if (ranks > 1)
      EXPECT_WRONG(
          halocline_plan_create(MPI_COMM_WORLD, "shared", 2, send, 2, receive, NULL, &plan),
          "not possible");
    test_exchange("auto", memory, column);
    test_kept("auto", &memory, column);
  }
  MPI_Type_free(&column);
}

/* A partner that starts late keeps `done` at 0. Rank 0 is late. */
static void test_late_partner(void) {
  double field[2] = {rank, -1};
  const halocline_message send = {field, 1, MPI_DOUBLE, (rank + 1) % ranks, 0, 0};
  const halocline_message receive = {field + 1, 1, MPI_DOUBLE, (rank + ranks - 1) % ranks, 0, 0};
  halocline_plan plan;
  EXPECT(halocline_plan_create(MPI_COMM_WORLD, "p2p", 1, &send, 1, &receive, NULL, &plan) == 0);
  if (rank == 0) MPI_Barrier(MPI_COMM_WORLD);
  EXPECT(halocline_start(plan) == 0);
  int done = 0;
  if (rank == 1)
    for (int i = 0; i < 100; ++i) {
      EXPECT(halocline_test(plan, &done) == 0);
      EXPECT(done == 0);
    }
  if (rank != 0) MPI_Barrier(MPI_COMM_WORLD);
  while (!done) EXPECT(halocline_test(plan, &done) == 0);
  EXPECT(field[1] == (rank + ranks - 1) % ranks);
  EXPECT(halocline_start(plan) == 0 && halocline_finish(plan) == 0); /* the plan can be used on */
  EXPECT(halocline_plan_free(&plan) == 0);
}

/* Mistakes of one rank are errors on all ranks. */
static void test_errors(void) {
  double field[8] = {0};
  const halocline_message send = {field, 1, MPI_DOUBLE, (rank + 1) % ranks, 0, 0};
  const halocline_message receive = {field + 4, 1, MPI_DOUBLE, (rank + ranks - 1) % ranks, 0, 0};
  halocline_plan plan;
#define CREATE(method, sends, send, options) \
  halocline_plan_create(MPI_COMM_WORLD, method, sends, send, 1, &receive, options, &plan)
  EXPECT_WRONG(CREATE("fastest", 1, &send, NULL), "alltoallv");
  EXPECT(plan == NULL);
  const int is_last = rank == ranks - 1;
  EXPECT_WRONG(CREATE("p2p", 1, is_last ? NULL : &send, NULL), "NULL");
  EXPECT_WRONG(CREATE("p2p", is_last ? -1 : 1, &send, NULL), "negative");
  EXPECT_WRONG(CREATE(is_last ? NULL : "p2p", 1, &send, NULL), "method");
  halocline_message longer = send;
  longer.count = is_last ? 2 : 1;
  EXPECT_WRONG(CREATE("p2p", 1, &longer, NULL), "bytes");
  longer.count = is_last ? (int64_t)1 << 61 : 1;
  EXPECT_WRONG(CREATE("p2p", 1, &longer, NULL), "too large");
  longer.count = is_last ? -1 : 1;
  EXPECT_WRONG(CREATE("p2p", 1, &longer, NULL), "negative");
  char of_last[20] = "";
  if (ranks > 1) snprintf(of_last, sizeof of_last, "rank %d: ", ranks - 1);
  EXPECT(strstr(halocline_last_error(), of_last) == halocline_last_error());
  if (ranks > 1) EXPECT_WRONG(CREATE("shared", 1, &send, NULL), "not possible");
  halocline_plan_options options = HALOCLINE_PLAN_OPTIONS;
  options.model = "/nowhere/model.json";
  EXPECT_WRONG(CREATE("p2p", 1, &send, &options), "/nowhere/model.json");
  EXPECT_WRONG(halocline_plan_create(MPI_COMM_NULL, "p2p", 0, NULL, 0, NULL, NULL, &plan),
               "MPI_COMM_NULL");
  EXPECT_WRONG(halocline_plan_inform(NULL, NULL), "is NULL");
  void* memory;
  EXPECT_WRONG(halocline_alloc(MPI_COMM_WORLD, is_last ? -1 : 1, &memory), "negative");
  memory = field;
  EXPECT_WRONG(halocline_free(&memory), "halocline_alloc");
  halocline_message nobody = send;
  nobody.partner = MPI_PROC_NULL;
  nobody.count = (int64_t)1 << 62;
  EXPECT(halocline_plan_create(MPI_COMM_WORLD, "p2p", 1, &nobody, 0, NULL, NULL, &plan) == 0);
  EXPECT(halocline_start(plan) == 0 && halocline_finish(plan) == 0);
  EXPECT(halocline_plan_free(&plan) == 0);
}

/* A program whose header had fewer options runs, and one whose header has more is refused. */
static void test_versions(void) {
  EXPECT(halocline_version() == HALOCLINE_VERSION);
  struct {
    size_t size;
    int64_t chunk_bytes;
  } older = {sizeof older, 4096};
  struct {
    halocline_plan_options known;
    int unknown;
  } newer = {HALOCLINE_PLAN_OPTIONS, 1};
  newer.known.size = sizeof newer;
  halocline_plan plan;
  const halocline_plan_options* options = (const void*)&older;
  EXPECT(halocline_plan_create(MPI_COMM_WORLD, "p2p", 0, NULL, 0, NULL, options, &plan) == 0);
  struct {
    size_t size;
    const char* method;
    const char* guard;
  } info = {2 * sizeof(void*), NULL, "guard"};
  EXPECT(halocline_plan_inform(plan, (void*)&info) == 0);
  EXPECT(strcmp(info.method, "p2p") == 0 && strcmp(info.guard, "guard") == 0);
  EXPECT(halocline_plan_free(&plan) == 0);
  EXPECT_WRONG(halocline_plan_create(MPI_COMM_WORLD, "p2p", 0, NULL, 0, NULL, &newer.known, &plan),
               "as new as its header");
}

static void test_packing(void) {
  enum { kFirst = 24, kCount = 2 };
  double memory[2 * kNumber * kStride], back[2 * kNumber * kStride];
  unsigned char packed[kFirst + 2 * 8 * kNumber], by_mpi[2 * 8 * kNumber];
  MPI_Datatype column;
  MPI_Type_vector(kNumber, 1, kStride, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  for (int i = 0; i < 2 * kNumber * kStride; ++i) memory[i] = i, back[i] = -1;
  int64_t bytes = 0, position = kFirst;
  EXPECT(halocline_packed_bytes(kCount, column, &bytes) == 0 && bytes == sizeof by_mpi);
  EXPECT(halocline_pack(memory, kCount, column, packed, sizeof packed, &position) == 0);
  EXPECT(position == sizeof packed);
  int at = 0;
  MPI_Pack(memory, kCount, column, by_mpi, sizeof by_mpi, &at, MPI_COMM_SELF);
  EXPECT(memcmp(packed + kFirst, by_mpi, sizeof by_mpi) == 0);
  position = kFirst;
  EXPECT(halocline_unpack(packed, sizeof packed, &position, back, kCount, column) == 0);
  MPI_Aint lb, extent;
  MPI_Type_get_extent(column, &lb, &extent);
  int wrong = 0;
  for (int i = 0; i < 2 * kNumber * kStride; ++i) {
    const int inside = i % (int)(extent / 8);
    const int is_packed = i < kCount * (int)(extent / 8) && inside % kStride == 0;
    wrong += back[i] != (is_packed ? memory[i] : -1);
  }
  EXPECT(wrong == 0);
  position = kFirst + 1;
  EXPECT_WRONG(halocline_pack(memory, kCount, column, packed, sizeof packed, &position),
               "do not fit");
  EXPECT(position == kFirst + 1);
  EXPECT_WRONG(halocline_packed_bytes(1, MPI_DATATYPE_NULL, &bytes), "MPI_DATATYPE_NULL");
  EXPECT_WRONG(halocline_packed_bytes((int64_t)1 << 61, column, &bytes), "too large");
  position = 0;
  EXPECT_WRONG(
      halocline_pack(memory, ((int64_t)1 << 60) + 1, column, packed, sizeof packed, &position),
      "too large");
  MPI_Type_free(&column);

  /* MPI packs what is nested too deep for the library. Its error must not end the process. */
  MPI_Datatype deep, inner;
  MPI_Type_dup(MPI_DOUBLE, &deep);
  for (int i = 0; i < 1100; ++i) {
    inner = deep;
    MPI_Type_create_hvector(1, 1, 8, inner, &deep);
    MPI_Type_free(&inner);
  }
  position = 0;
  EXPECT(halocline_pack(memory, 1, deep, packed, sizeof packed, &position) == 0 && position == 8);
  EXPECT(memcmp(packed, memory, 8) == 0);
  position = 0;
  memset(packed, 7, 8);
  EXPECT(halocline_unpack(packed, sizeof packed, &position, memory, 1, deep) == 0);
  EXPECT(position == 8 && memcmp(packed, memory, 8) == 0);
  MPI_Type_free(&deep);
}

static void test_descriptions(void) {
  MPI_Datatype column;
  MPI_Type_vector(kNumber, 1, kStride, MPI_DOUBLE, &column);
  int64_t needed = 0;
  EXPECT(halocline_describe(column, NULL, 0, &needed) == 0 && needed > 0);
  char* const text = malloc((size_t)needed);
  EXPECT(halocline_describe(column, text, needed, &needed) == 0);
  EXPECT((int64_t)strlen(text) == needed - 1 && strstr(text, "\"supported\":true") != NULL);
  EXPECT_WRONG(halocline_describe(column, text, needed - 1, &needed), "takes");
  EXPECT_WRONG(halocline_describe(MPI_DATATYPE_NULL, text, needed, &needed), "MPI_DATATYPE_NULL");
  free(text);
  MPI_Type_free(&column);
}

int main(int argc, char** argv) {
  halocline_plan plan = NULL;
  EXPECT_WRONG(halocline_plan_create(MPI_COMM_WORLD, "p2p", 0, NULL, 0, NULL, NULL, &plan),
               "MPI is not running");
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  test_versions();
  test_errors();
  test_exchanges();
  test_ordinary_memory();
  test_late_partner();
  test_packing();
  test_descriptions();
  test_halos();
  test_messages();
  test_gathers();
  MPI_Allreduce(MPI_IN_PLACE, &mistakes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  EXPECT_WRONG(halocline_start(plan), "MPI is not running");
  EXPECT_WRONG(halocline_finish(plan), "MPI is not running");
  return mistakes == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
