// SPDX-License-Identifier: BSD-3-Clause
// How the interposer learns of datatypes. MPI_Init needs no wrapper, since nothing is done before a
// type is committed; nor does MPI_Type_free, since MPI drops what is known of a type with its
// attributes; nor MPI_Finalize, which begins with the attributes of MPI_COMM_SELF.
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
