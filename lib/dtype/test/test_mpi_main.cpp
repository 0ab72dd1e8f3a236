// SPDX-License-Identifier: BSD-3-Clause
// Tests the shared main: a test that fails on one rank, which does not print, must fail on all
// ranks.
#include <gtest/gtest.h>
#include <mpi.h>

TEST(MpiMain, FailsOnRankOne) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  EXPECT_NE(rank, 1);
}
