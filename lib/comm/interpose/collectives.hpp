// SPDX-License-Identifier: BSD-3-Clause
// With whom a rank exchanges in a collective.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace halocline::interpose {

/// One for each rank of a group, or for each neighbor.
struct Partners {
  int count = 0;
  std::vector<bool> there;  ///< whether there is one: a grid may end somewhere; empty: all are

  bool is_there(int i) const { return there.empty() || there[static_cast<std::size_t>(i)]; }
};

/// Of the other group if there are two.
Partners partners_of(MPI_Comm comm);

/// Sources and destinations.
std::pair<int, int> neighbor_counts(MPI_Comm comm);
struct Neighbors {
  Partners in, out;
};
Neighbors neighbors_of(MPI_Comm comm);

}  // namespace halocline::interpose
