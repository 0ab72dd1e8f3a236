// SPDX-License-Identifier: BSD-3-Clause
// Defines the calls that send and receive.
#include "comm/interpose/messages.hpp"

#include <climits>
#include <exception>
#include <optional>
#include <utility>

namespace halocline::interpose {

std::optional<PackedMessage> packed_instead(Call call, KnownType* known, MPI_Datatype type,
                                            const void* buffer, int count, int partner) {
  if (known == nullptr || count <= 0 || partner == MPI_PROC_NULL) return std::nullopt;
  const auto traffic =
      call == Call::send || call == Call::recv ? Traffic::one_way : Traffic::both_ways;
  const bool is_persistent = call == Call::send_init || call == Call::recv_init;
  const bool receives = call == Call::recv || call == Call::irecv || call == Call::sendrecv_recv ||
                        call == Call::recv_init;
  const auto by = known->to_send(type, buffer, count, receives ? Way::receive : Way::send, traffic,
                                 is_persistent);
  if (by.plan == nullptr || !sees_completions()) return std::nullopt;
  const auto bytes = by.plan->packed_bytes(count);
  if (bytes > INT_MAX || (kStreams && bytes < 2)) return std::nullopt;  // one byte is not streamed
  try {
    return PackedMessage(by, type, buffer, count);
  } catch (const std::exception&) {
    return std::nullopt;  // MPI may need less memory
  }
}

}  // namespace halocline::interpose

using namespace halocline::interpose;

// With MPICH, a call succeeds after an error whose handler has returned. So a status starts as
// nothing received, and a request as MPI_REQUEST_NULL. Then nothing is unpacked or watched.
namespace {
MPI_Status* emptied(MPI_Status* wanted, MPI_Status& own) {
  auto* const out = wanted == MPI_STATUS_IGNORE ? &own : wanted;
  PMPI_Status_set_elements(out, MPI_PACKED, 0);
  return out;
}

}  // namespace

int MPI_Send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  const auto by_mpi = [&](const void* data, int n, MPI_Datatype type) {
    return PMPI_Send(data, n, type, dest, tag, comm);
  };
  return carry(Call::send, {buf, count, datatype, dest}, by_mpi, kPack, kNothing);
}

int MPI_Recv(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
             MPI_Status* status) {
  MPI_Status own;
  const auto by_mpi = [&](void* data, int n, MPI_Datatype type) {
    if (type != datatype) status = emptied(status, own);
    return PMPI_Recv(data, n, type, source, tag, comm, status);
  };
  return carry(Call::recv, {buf, count, datatype, source}, by_mpi, kNothing,
               [&](const PackedMessage& packed) { packed.unpack(*status); });
}

int MPI_Sendrecv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                 void* recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,
                 MPI_Comm comm, MPI_Status* status) {
  MPI_Status own;
  const auto by_mpi = [&](const void* data, int n, MPI_Datatype type) {
    const auto both = [&](void* to, int room, MPI_Datatype of) {
      if (of != recvtype) status = emptied(status, own);
      return PMPI_Sendrecv(data, n, type, dest, sendtag, to, room, of, source, recvtag, comm,
                           status);
    };
    return carry(Call::sendrecv_recv, {recvbuf, recvcount, recvtype, source}, both, kNothing,
                 [&](const PackedMessage& packed) { packed.unpack(*status); });
  };
  return carry(Call::sendrecv, {sendbuf, sendcount, sendtype, dest}, by_mpi, kPack, kNothing);
}

int MPI_Isend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
              MPI_Request* request) {
  const auto by_mpi = [&](const void* data, int n, MPI_Datatype type) {
    if (type != datatype) *request = MPI_REQUEST_NULL;
    return PMPI_Isend(data, n, type, dest, tag, comm, request);
  };
  return carry(Call::isend, {buf, count, datatype, dest}, by_mpi, kPack,
               watch_as(request, Way::send));
}

int MPI_Irecv(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
              MPI_Request* request) {
  const auto by_mpi = [&](void* data, int n, MPI_Datatype type) {
    if (type != datatype) *request = MPI_REQUEST_NULL;
    return PMPI_Irecv(data, n, type, source, tag, comm, request);
  };
  return carry(Call::irecv, {buf, count, datatype, source}, by_mpi, kNothing,
               watch_as(request, Way::receive));
}

int MPI_Send_init(const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
                  MPI_Comm comm, MPI_Request* request) {
  const auto by_mpi = [&](const void* data, int n, MPI_Datatype type) {
    if (type != datatype) *request = MPI_REQUEST_NULL;
    return PMPI_Send_init(data, n, type, dest, tag, comm, request);
  };
  return carry(Call::send_init, {buf, count, datatype, dest}, by_mpi, kNothing,
               watch_persistent_as(request, Way::send));
}

int MPI_Recv_init(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                  MPI_Request* request) {
  const auto by_mpi = [&](void* data, int n, MPI_Datatype type) {
    if (type != datatype) *request = MPI_REQUEST_NULL;
    return PMPI_Recv_init(data, n, type, source, tag, comm, request);
  };
  return carry(Call::recv_init, {buf, count, datatype, source}, by_mpi, kNothing,
               watch_persistent_as(request, Way::receive));
}
