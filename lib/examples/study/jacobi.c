/* SPDX-License-Identifier: BSD-3-Clause */
/* Solves Laplace's equation by Jacobi's method: doubles, four neighbours, fixed borders. */
#include "study.h"

static void begin(Grid* g) {
  for (int k = 0; k < 2; ++k) { /* the lower border of the whole grid is warm */
    double* const u = (double*)g->arrays[k];
    if (g->row_begin == 0)
      for (int j = 0; j < g->columns + 2; ++j) u[j] = 1 + (g->column_begin + j) % 7;
  }
}

static void step(const Grid* g, const char* from, char* to) {
  const int stride = g->columns + 2;
  for (int i = 1; i <= g->rows; ++i) {
    const double* const u = (const double*)from + (size_t)i * stride;
    double* const v = (double*)to + (size_t)i * stride;
    for (int j = 1; j <= g->columns; ++j)
      v[j] = 0.25 * ((u[j - 1] + u[j + 1]) + (u[j - stride] + u[j + stride]));
  }
}

int main(int argc, char** argv) {
  static Grid grid;
  MPI_Init(&argc, &argv);
  make_grid(&grid, 0, 4, MPI_DOUBLE);
  const int wrong = study("jacobi", &grid, begin, step);
  MPI_Finalize();
  return wrong;
}
