/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts receives for test_fortran.F90 in C and by Fortran's mpi_irecv_, and waits for receives of
 * the program: a request of one language may be completed in another one. */
#include <mpi.h>

void mpi_irecv_(void* buffer, const MPI_Fint* count, const MPI_Fint* type, const MPI_Fint* source,
                const MPI_Fint* tag, const MPI_Fint* comm, MPI_Fint* request, MPI_Fint* error);

void receive_in_c(void* buffer, MPI_Fint type, MPI_Fint source, MPI_Fint tag, MPI_Fint* request) {
  MPI_Request in_c;
  MPI_Irecv(buffer, 1, MPI_Type_f2c(type), source, tag, MPI_COMM_WORLD, &in_c);
  *request = MPI_Request_c2f(in_c);
}

void receive_in_fortran(void* buffer, MPI_Fint type, MPI_Fint source, MPI_Fint tag,
                        MPI_Fint* request) {
  const MPI_Fint count = 1, comm = MPI_Comm_c2f(MPI_COMM_WORLD);
  MPI_Fint error;
  mpi_irecv_(buffer, &count, &type, &source, &tag, &comm, request, &error);
}

void wait_in_c(MPI_Fint* request) {
  MPI_Request in_c = MPI_Request_f2c(*request);
  MPI_Wait(&in_c, MPI_STATUS_IGNORE);
  *request = MPI_Request_c2f(in_c);
}
