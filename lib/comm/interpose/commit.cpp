// SPDX-License-Identifier: BSD-3-Clause
// Defines the calls that commit types, where the interposer learns of them.
//
// Other calls need no wrapper. Before the first commit nothing is done, so MPI_Init needs none.
// When a type is freed, MPI drops what is known of it with its attributes. MPI_Finalize begins with
// the attributes of MPI_COMM_SELF.
#include <mpi.h>

#include "comm/interpose/types.hpp"

using namespace halocline;

int MPI_Type_commit(MPI_Datatype* datatype) {
  const int code = PMPI_Type_commit(datatype);
  if (code == MPI_SUCCESS) interpose::committed(*datatype);
  return code;
}

int MPI_Type_dup(MPI_Datatype oldtype, MPI_Datatype* newtype) {
  const int code = PMPI_Type_dup(oldtype, newtype);
  // The copy of a committed type is committed.
  if (code == MPI_SUCCESS && interpose::known_type(oldtype) != nullptr)
    interpose::committed(*newtype);
  return code;
}
