/* SPDX-License-Identifier: BSD-3-Clause */
/* Plays Conway's Game of Life: bytes, eight neighbours, a torus. */
#include "study.h"

static void begin(Grid* g) {
  for (int i = 0; i < g->rows; ++i)
    for (int j = 0; j < g->columns; ++j) {
      const uint32_t place = (uint32_t)(g->row_begin + i) * SIZE + g->column_begin + j;
      g->arrays[0][(size_t)(i + 1) * (g->columns + 2) + j + 1] =
          (place * 2654435761u >> 13) % 3 == 0;
    }
}

static void step(const Grid* g, const char* from, char* to) {
  const int stride = g->columns + 2;
  for (int i = 1; i <= g->rows; ++i) {
    const char* const u = from + (size_t)i * stride;
    char* const v = to + (size_t)i * stride;
    for (int j = 1; j <= g->columns; ++j) {
      const char* const p = u + j;
      const char around = p[-1] + p[1] + p[-stride - 1] + p[-stride] + p[-stride + 1] +
                          p[stride - 1] + p[stride] + p[stride + 1];
      v[j] = around == 3 || (around == 2 && *p);
    }
  }
}

int main(int argc, char** argv) {
  static Grid grid;
  MPI_Init(&argc, &argv);
  make_grid(&grid, 1, 8, MPI_CHAR);
  const int wrong = study("life", &grid, begin, step);
  MPI_Finalize();
  return wrong;
}
