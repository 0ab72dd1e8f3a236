// SPDX-License-Identifier: BSD-3-Clause
// A test that fails on one rank, and not on the one that prints: the shared main must make it fail
// for all.
#include <gtest/gtest.h>
#include <mpi.h>

TEST(MpiMain, FailsOnRankOne) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  EXPECT_NE(rank, 1);
}
