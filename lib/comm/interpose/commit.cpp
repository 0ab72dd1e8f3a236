// SPDX-License-Identifier: BSD-3-Clause
// Defines the calls that commit types, where the interposer learns of them.
//
// Other calls need no wrapper. Before the first commit nothing is done, so MPI_Init needs none.
// When a type is freed, MPI drops what is known of it with its attributes. MPI_Finalize begins with
// the attributes of MPI_COMM_SELF.
#include "comm/interpose/languages.hpp"
#include "comm/interpose/types.hpp"

namespace halocline::interpose {
namespace {

int type_commit(const auto& mpi, auto type) {
  const int code = mpi(type);
  if (code == MPI_SUCCESS) note_commit(at(type, 0));
  return code;
}

int type_dup(const auto& mpi, auto old_type, auto new_type) {
  const int code = mpi(old_type, new_type);
  // The copy of a committed type is committed.
  if (code == MPI_SUCCESS && committed_type(in_c(old_type)) != nullptr)
    note_commit(at(new_type, 0));
  return code;
}

}  // namespace
}  // namespace halocline::interpose

#define HALOCLINE_COMMIT HALOCLINE_ENTRY_POINTS
#include "comm/interpose/calls.def"
