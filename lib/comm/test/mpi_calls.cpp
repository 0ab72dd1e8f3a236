// SPDX-License-Identifier: BSD-3-Clause
// Replaces MPI functions by ones that count the call and go on to PMPI.
#include "mpi_calls.hpp"

#include <mpi.h>

namespace halocline::comm {

MpiCalls mpi_calls;

namespace {

struct Send {
  std::int64_t bytes;
  int to;
};
std::map<MPI_Request, Send>& sends() {
  static std::map<MPI_Request, Send> all;
  return all;
}

int rank_in_world(int rank, MPI_Comm comm) {
  MPI_Group group, world;
  int out = MPI_UNDEFINED;
  MPI_Comm_group(comm, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_translate_ranks(group, 1, &rank, world, &out);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  return out;
}

Send send_of(int count, MPI_Datatype type, int to, MPI_Comm comm) {
  MPI_Count size = 0;
  MPI_Type_size_x(type, &size);
  return {count * size, rank_in_world(to, comm)};
}

void count_send(const Send& send) {
  ++mpi_calls.sends;
  mpi_calls.bytes_to[send.to] += send.bytes;
}

}  // namespace

}  // namespace halocline::comm

using halocline::comm::mpi_calls;

extern "C" {

int MPI_Pack(const void* in, int count, MPI_Datatype type, void* out, int size, int* position,
             MPI_Comm comm) {
  ++mpi_calls.packs;
  return PMPI_Pack(in, count, type, out, size, position, comm);
}

int MPI_Unpack(const void* in, int size, int* position, void* out, int count, MPI_Datatype type,
               MPI_Comm comm) {
  ++mpi_calls.packs;
  return PMPI_Unpack(in, size, position, out, count, type, comm);
}

int MPI_Sendrecv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int to, int sendtag,
                 void* recvbuf, int recvcount, MPI_Datatype recvtype, int from, int recvtag,
                 MPI_Comm comm, MPI_Status* status) {
  ++mpi_calls.sendrecvs;
  return PMPI_Sendrecv(sendbuf, sendcount, sendtype, to, sendtag, recvbuf, recvcount, recvtype,
                       from, recvtag, comm, status);
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* out) {
  ++mpi_calls.splits;
  return PMPI_Comm_split(comm, color, key, out);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* out) {
  ++mpi_calls.splits;
  return PMPI_Comm_dup(comm, out);
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* out) {
  ++mpi_calls.splits;
  return PMPI_Comm_split_type(comm, type, key, info, out);
}

int MPI_Send_init(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                  MPI_Request* request) {
  const int code = PMPI_Send_init(buffer, count, type, to, tag, comm, request);
  halocline::comm::sends()[*request] = halocline::comm::send_of(count, type, to, comm);
  return code;
}

int MPI_Send(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  halocline::comm::count_send(halocline::comm::send_of(count, type, to, comm));
  return PMPI_Send(buffer, count, type, to, tag, comm);
}

int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  halocline::comm::count_send(halocline::comm::send_of(count, type, to, comm));
  return PMPI_Isend(buffer, count, type, to, tag, comm, request);
}

int MPI_Request_free(MPI_Request* request) {
  halocline::comm::sends().erase(*request);
  return PMPI_Request_free(request);
}

int MPI_Start(MPI_Request* request) {
  const auto found = halocline::comm::sends().find(*request);
  if (found != halocline::comm::sends().end()) halocline::comm::count_send(found->second);
  return PMPI_Start(request);
}

}  // extern "C"
