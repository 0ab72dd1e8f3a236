// SPDX-License-Identifier: BSD-3-Clause
// With whom a rank exchanges in a collective.
#pragma once

#include <mpi.h>

#include <vector>

namespace halocline::interpose {

/// One for each rank, of the other group if there are two.
std::vector<bool> partners_of(MPI_Comm comm);

/// Whether there is one, by neighbor: a grid that is not periodic ends somewhere.
struct Neighbors {
  std::vector<bool> in, out;
};
Neighbors neighbors_of(MPI_Comm comm);

}  // namespace halocline::interpose
