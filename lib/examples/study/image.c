/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds an image again from its edges: floats, four neighbours, a torus. An edge is the difference
 * between a pixel's four neighbours and four times the pixel. */
#include "study.h"

static float pixel(int row, int column) {
  row = (row + SIZE) % SIZE, column = (column + SIZE) % SIZE;
  return (float)((row / 64 + column / 96) % 2 * 200 + row % 17);
}
static float* edges;

static void begin(Grid* g) {
  if (edges == NULL) edges = malloc((size_t)g->rows * g->columns * sizeof *edges);
  for (int i = 0; i < g->rows; ++i)
    for (int j = 0; j < g->columns; ++j) {
      const int row = g->row_begin + i, column = g->column_begin + j;
      edges[(size_t)i * g->columns + j] = pixel(row - 1, column) + pixel(row + 1, column) +
                                          pixel(row, column - 1) + pixel(row, column + 1) -
                                          4 * pixel(row, column);
      ((float*)g->arrays[0])[(size_t)(i + 1) * (g->columns + 2) + j + 1] = 127;
    }
}

static void step(const Grid* g, const char* from, char* to) {
  const int stride = g->columns + 2;
  for (int i = 1; i <= g->rows; ++i) {
    const float* const u = (const float*)from + (size_t)i * stride;
    const float* const edge = edges + (size_t)(i - 1) * g->columns - 1;
    float* const v = (float*)to + (size_t)i * stride;
    for (int j = 1; j <= g->columns; ++j)
      v[j] = 0.25f * ((u[j - 1] + u[j + 1]) + (u[j - stride] + u[j + stride]) - edge[j]);
  }
}

int main(int argc, char** argv) {
  static Grid grid;
  MPI_Init(&argc, &argv);
  make_grid(&grid, 1, 4, MPI_FLOAT);
  const int wrong = study("image", &grid, begin, step);
  free(edges);
  MPI_Finalize();
  return wrong;
}
