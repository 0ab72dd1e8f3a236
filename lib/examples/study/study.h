/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges the halo of a 2-D grid in several ways, and times them: packed by hand or described by
 * derived datatypes, each by MPI_Isend, by persistent requests, and by MPI_Neighbor_alltoallw.
 *
 * Each of these is done twice, by MPI_Isend and by PMPI_Isend, and so on. A library in front of MPI
 * takes part in MPI_Isend alone. So one run compares the times with and without such a library.
 * jacobi.c, life.c and image.c include this file. They are ordinary programs for MPI. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HAND, TYPES, WAYS };
enum { ISEND, PERSISTENT, NEIGHBOR, CALLS };
enum { PMPI, MPI, NAMES }; /* the functions' first letters */
enum { DIRECTIONS = 8, ROUNDS = 5, VARIANTS = NAMES * WAYS * CALLS };
#ifndef SIZE
#define SIZE 1536 /* points along each axis */
#endif
#ifndef STEPS
#define STEPS 30
#endif
static const char* const way_names[] = {"hand", "types"};
static const char* const call_names[] = {"isend", "persistent", "neighbor"};
/* Calls MPI_X(...) or PMPI_X(...). */
#define CALL(name, X, ...) (name == MPI ? MPI_##X(__VA_ARGS__) : PMPI_##X(__VA_ARGS__))
/* Faces come first, then corners: row and column. Directions d and d ^ 1 are opposite. */
static const int direction[DIRECTIONS][2] = {{-1, 0},  {1, 0}, {0, -1}, {0, 1},
                                             {-1, -1}, {1, 1}, {-1, 1}, {1, -1}};

/* Describes this rank's part of the grid: rows * columns owned points inside of one ghost point on
 * each side. */
typedef struct Grid {
  MPI_Comm graph;
  MPI_Datatype element;
  int bytes; /* of a point */
  int rows, columns, row_begin, column_begin;
  int directions; /* 4: faces; 8: corners, too */
  int to[DIRECTIONS], from[DIRECTIONS];
  MPI_Datatype types[DIRECTIONS];
  int places[2][DIRECTIONS]; /* points from the begin of an array to what is sent, and received */
  int counts[DIRECTIONS];    /* points of a message */
  char *arrays[2], *packed[2][DIRECTIONS];
  MPI_Request persistent[NAMES][WAYS][2][2 * DIRECTIONS]; /* by array */
} Grid;

static char* at(const Grid* g, int array, int role, int d) {
  return g->arrays[array] + (size_t)g->places[role][d] * g->bytes;
}

/* Copies `count` points, whose distances are given in points. */
static void copy(int bytes, int count, const void* from, size_t from_stride, void* to,
                 size_t to_stride) {
#define COPY(T) \
  for (int i = 0; i < count; ++i) ((T*)to)[i * to_stride] = ((const T*)from)[i * from_stride]
  if (bytes == 8)
    COPY(uint64_t);
  else if (bytes == 4)
    COPY(uint32_t);
  else
    COPY(uint8_t);
}
/* Copies a column or corner to consecutive bytes. Rows are consecutive already. */
static void pack(const Grid* g, int array, int d) {
  if (direction[d][1] != 0 && g->to[d] != MPI_PROC_NULL)
    copy(g->bytes, g->counts[d], at(g, array, 0, d), g->columns + 2, g->packed[0][d], 1);
}
/* Copies a column or corner back from consecutive bytes. */
static void unpack(const Grid* g, int array, int d) {
  if (direction[d][1] != 0 && g->from[d] != MPI_PROC_NULL)
    copy(g->bytes, g->counts[d], g->packed[1][d], 1, at(g, array, 1, d), g->columns + 2);
}

/* Returns the buffer, count and type of a message. By hand, rows leave from where they are. */
static char* buffer(const Grid* g, int way, int array, int role, int d) {
  return way == HAND && direction[d][1] != 0 ? g->packed[role][d] : at(g, array, role, d);
}
static int count(const Grid* g, int way, int d) {
  return way == HAND ? g->counts[d] : 1;
}
static MPI_Datatype type(const Grid* g, int way, int d) {
  return way == HAND ? g->element : g->types[d];
}

static void exchange_by_neighbors(Grid* g, int name, int way, int array) {
  MPI_Aint places[2][DIRECTIONS];
  MPI_Datatype types[DIRECTIONS];
  int counts[DIRECTIONS], out = 0, in = 0, counts_in[DIRECTIONS];
  MPI_Datatype types_in[DIRECTIONS];
  for (int d = 0; d < g->directions; ++d) {
    if (g->to[d] != MPI_PROC_NULL) {
      MPI_Get_address(buffer(g, way, array, 0, d), &places[0][out]);
      counts[out] = count(g, way, d), types[out++] = type(g, way, d);
    }
    if (g->from[d] != MPI_PROC_NULL) {
      MPI_Get_address(buffer(g, way, array, 1, d), &places[1][in]);
      counts_in[in] = count(g, way, d), types_in[in++] = type(g, way, d);
    }
  }
  CALL(name, Neighbor_alltoallw, MPI_BOTTOM, counts, places[0], types, MPI_BOTTOM, counts_in,
       places[1], types_in, g->graph);
}

static void exchange(Grid* g, int name, int way, int call, int array) {
  const int n = g->directions;
  MPI_Request requests[2 * DIRECTIONS];
  if (call == ISEND)
    for (int d = 0; d < n; ++d)
      CALL(name, Irecv, buffer(g, way, array, 1, d), count(g, way, d), type(g, way, d), g->from[d],
           d, MPI_COMM_WORLD, &requests[d]);
  if (way == HAND)
    for (int d = 0; d < n; ++d) pack(g, array, d);
  if (call == ISEND) {
    for (int d = 0; d < n; ++d)
      CALL(name, Isend, buffer(g, way, array, 0, d), count(g, way, d), type(g, way, d), g->to[d], d,
           MPI_COMM_WORLD, &requests[n + d]);
    CALL(name, Waitall, 2 * n, requests, MPI_STATUSES_IGNORE);
  } else if (call == PERSISTENT) {
    CALL(name, Startall, 2 * n, g->persistent[name][way][array]);
    CALL(name, Waitall, 2 * n, g->persistent[name][way][array], MPI_STATUSES_IGNORE);
  } else {
    exchange_by_neighbors(g, name, way, array);
  }
  if (way == HAND)
    for (int d = 0; d < n; ++d) unpack(g, array, d);
}

/* Splits a grid of SIZE * SIZE points. More ranks lie along a row than along a column. */
static void make_grid(Grid* g, int periodic, int directions, MPI_Datatype element) {
  int ranks, rank, parts[2] = {0, 0}, place[2];
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Dims_create(ranks, 2, parts);
  const int split[2] = {parts[1], parts[0]};
  place[0] = rank / split[1], place[1] = rank % split[1];
  g->rows = SIZE / split[0], g->columns = SIZE / split[1];
  if (g->rows * split[0] != SIZE || g->columns * split[1] != SIZE) {
    if (rank == 0) fprintf(stderr, "%d points cannot be split over %d ranks\n", SIZE, ranks);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  g->row_begin = place[0] * g->rows, g->column_begin = place[1] * g->columns;
  g->directions = directions, g->element = element;
  MPI_Type_size(element, &g->bytes);
  const int stride = g->columns + 2;
  for (int k = 0; k < 2; ++k) {
    g->arrays[k] = calloc((size_t)(g->rows + 2) * stride, g->bytes);
    for (int d = 0; d < directions; ++d)
      g->packed[k][d] = malloc((size_t)(g->rows + g->columns) * g->bytes);
  }
  int sources[DIRECTIONS], destinations[DIRECTIONS], ones[DIRECTIONS], in = 0, out = 0;
  for (int d = 0; d < directions; ++d) {
    const int *step = direction[d], length[2] = {step[0] ? 1 : g->rows, step[1] ? 1 : g->columns};
    for (int side = 0; side < 2; ++side) { /* to the neighbour, and from the opposite one */
      const int sign = side ? -1 : 1;
      int other[2], inside = 1;
      for (int axis = 0; axis < 2; ++axis) {
        other[axis] = place[axis] + sign * step[axis];
        if (other[axis] < 0 || other[axis] >= split[axis]) inside = periodic && inside;
        other[axis] = (other[axis] + split[axis]) % split[axis];
      }
      *(side ? &g->from[d] : &g->to[d]) = inside ? other[0] * split[1] + other[1] : MPI_PROC_NULL;
    }
    /* The first or last owned row or column is sent, and the ghosts on the opposite side received.
     */
    const int first_row = step[0] > 0 ? g->rows : 1, first_column = step[1] > 0 ? g->columns : 1;
    g->places[0][d] = first_row * stride + first_column;
    g->places[1][d] = (step[0] > 0   ? 0
                       : step[0] < 0 ? g->rows + 1
                                     : 1) *
                          stride +
                      (step[1] > 0   ? 0
                       : step[1] < 0 ? g->columns + 1
                                     : 1);
    g->counts[d] = length[0] * length[1];
    MPI_Type_vector(length[0], length[1], stride, element, &g->types[d]);
    MPI_Type_commit(&g->types[d]);
    ones[d] = 1;
    if (g->from[d] != MPI_PROC_NULL) sources[in++] = g->from[d];
    if (g->to[d] != MPI_PROC_NULL) destinations[out++] = g->to[d];
  }
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, sources, ones, out, destinations, ones,
                                 MPI_INFO_NULL, 0, &g->graph);
  for (int name = 0; name < NAMES; ++name)
    for (int way = 0; way < WAYS; ++way)
      for (int k = 0; k < 2; ++k)
        for (int d = 0; d < directions; ++d) {
          MPI_Request* const requests = g->persistent[name][way][k];
          CALL(name, Recv_init, buffer(g, way, k, 1, d), count(g, way, d), type(g, way, d),
               g->from[d], d, MPI_COMM_WORLD, &requests[d]);
          CALL(name, Send_init, buffer(g, way, k, 0, d), count(g, way, d), type(g, way, d),
               g->to[d], d, MPI_COMM_WORLD, &requests[directions + d]);
        }
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Returns a sum over the bits of all owned points, which is the same for any number of ranks. */
static uint64_t checksum(const Grid* g) {
  uint64_t sum = 0, all;
  for (int i = 0; i < g->rows; ++i)
    for (int j = 0; j < g->columns; ++j) {
      uint64_t bits = 0;
      memcpy(&bits, g->arrays[STEPS % 2] + ((size_t)(i + 1) * (g->columns + 2) + j + 1) * g->bytes,
             g->bytes);
      const uint64_t place = (uint64_t)(g->row_begin + i) * SIZE + g->column_begin + j;
      sum += (bits + 1) * (2 * place + 1) * 0x9E3779B97F4A7C15u;
    }
  MPI_Allreduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

/* Runs the steps of a program in all ways in turns. Prints the median time of an exchange and of a
 * step, and the checksum. Returns 1 if a checksum differs. */
static int study(const char* program, Grid* g, void (*begin)(Grid*),
                 void (*step)(const Grid*, const char* from, char* to)) {
  static double times[VARIANTS][2][ROUNDS * STEPS];
  uint64_t sums[VARIANTS], first = 0;
  int rank, ranks, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
#define NAME(v) ((v) % NAMES)
#define WAY(v) ((v) / NAMES % WAYS)
#define CALL_OF(v) ((v) / NAMES / WAYS)
  for (int round = 0; round < ROUNDS; ++round)
    for (int turn = 0; turn < VARIANTS; ++turn) {
      const int v = round % 2 == 0 ? turn : VARIANTS - 1 - turn;
      for (int k = 0; k < 2; ++k)
        memset(g->arrays[k], 0, (size_t)(g->rows + 2) * (g->columns + 2) * g->bytes);
      begin(g);
      for (int s = 0; s < STEPS; ++s) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        exchange(g, NAME(v), WAY(v), CALL_OF(v), s % 2);
        const double exchanged = MPI_Wtime();
        step(g, g->arrays[s % 2], g->arrays[1 - s % 2]);
        times[v][0][round * STEPS + s] = exchanged - start;
        times[v][1][round * STEPS + s] = MPI_Wtime() - start;
      }
      sums[v] = checksum(g);
      if (round == 0 && turn == 0) first = sums[v];
      wrong |= sums[v] != first;
    }
  MPI_Reduce(rank == 0 ? MPI_IN_PLACE : times, times, sizeof times / sizeof(double), MPI_DOUBLE,
             MPI_MAX, 0, MPI_COMM_WORLD);
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(version, &length);
  if (rank == 0)
    printf(
        "# %.*s\n# program, ranks, packing, calls, names, us for an exchange and a step, "
        "checksum\n",
        (int)strcspn(version, ",\n"), version);
  for (int v = 0; rank == 0 && v < VARIANTS; ++v) {
    for (int k = 0; k < 2; ++k) qsort(times[v][k], ROUNDS * STEPS, sizeof(double), compare);
    printf("%-7s %d %-6s %-11s %-5s %9.2f %9.2f %016llx\n", program, ranks, way_names[WAY(v)],
           call_names[CALL_OF(v)], NAME(v) == MPI ? "MPI_" : "PMPI_",
           1e6 * times[v][0][ROUNDS * STEPS / 2], 1e6 * times[v][1][ROUNDS * STEPS / 2],
           (unsigned long long)sums[v]);
  }
  if (wrong && rank == 0) fprintf(stderr, "%s: THE WAYS GIVE DIFFERENT RESULTS\n", program);
  for (int v = 0; v < NAMES * WAYS; ++v)
    for (int k = 0; k < 2; ++k)
      for (int i = 0; i < 2 * g->directions; ++i)
        CALL(NAME(v), Request_free, &g->persistent[NAME(v)][WAY(v)][k][i]);
  for (int d = 0; d < g->directions; ++d) {
    MPI_Type_free(&g->types[d]);
    free(g->packed[0][d]), free(g->packed[1][d]);
  }
  free(g->arrays[0]), free(g->arrays[1]);
  MPI_Comm_free(&g->graph);
  return wrong;
}
