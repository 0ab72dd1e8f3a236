// SPDX-License-Identifier: BSD-3-Clause
// With whom a rank exchanges in a collective.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "dtype/pack/handle_table.hpp"

namespace halocline::interpose {

/// One for each rank of a group, or for each neighbor.
struct Partners {
  int count = 0;
  std::vector<bool> there{};  ///< whether there is one: a grid may end somewhere; empty: all are

  bool is_there(int i) const { return there.empty() || there[static_cast<std::size_t>(i)]; }
};

/// Those of a communicator, which stay the same until it is freed.
struct Group {
  struct Between {
    Partners sources, destinations;
  };
  Partners ranks;  ///< of the other group if there are two
  Between neighbors;
};

/// Those that were asked for.
extern dtype::HandleTable<Group, dtype::HandlesOf::communicators>* const groups;

/// Asks MPI.
const Group* new_group(MPI_Comm comm) noexcept;

/// Asks MPI once for each communicator. nullptr if there is no memory for the answer.
inline const Group* group_of(MPI_Comm comm) noexcept {
  const auto* const known = groups->find(comm);
  return known != nullptr ? known : new_group(comm);
}

}  // namespace halocline::interpose
