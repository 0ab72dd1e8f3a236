// SPDX-License-Identifier: BSD-3-Clause
// Sends and receives.
#include "comm/interpose/messages.hpp"

#include <climits>
#include <exception>
#include <optional>
#include <utility>

namespace halocline::interpose {

std::optional<Travelling> packed_instead(KnownType* known, MPI_Datatype type, const void* buffer,
                                         int count, int partner) {
  if (known == nullptr || count <= 0 || partner == MPI_PROC_NULL) return std::nullopt;
  const auto by = known->to_send(type, buffer, count);
  if (by.plan == nullptr || !sees_completions() || by.plan->packed_bytes(count) > INT_MAX)
    return std::nullopt;
  try {
    return Travelling(by, buffer, count);
  } catch (const std::exception&) {
    return std::nullopt;  // MPI may do with less memory
  }
}

}  // namespace halocline::interpose

using namespace halocline::interpose;

int MPI_Send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  auto* const known = known_type(datatype);
  const auto packed = packed_instead(known, datatype, buf, count, dest);
  if (!packed)
    return by_mpi(Call::send, known, datatype, count,
                  [&] { return PMPI_Send(buf, count, datatype, dest, tag, comm); });
  return noted(Call::send, Path::engine, datatype, count, [&] {
    packed->pack();
    return PMPI_Send(packed->data(), packed->bytes(), MPI_PACKED, dest, tag, comm);
  });
}

int MPI_Recv(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
             MPI_Status* status) {
  auto* const known = known_type(datatype);
  const auto packed = packed_instead(known, datatype, buf, count, source);
  if (!packed)
    return by_mpi(Call::recv, known, datatype, count,
                  [&] { return PMPI_Recv(buf, count, datatype, source, tag, comm, status); });
  return noted(Call::recv, Path::engine, datatype, count, [&] {
    MPI_Status own;
    auto& got = status == MPI_STATUS_IGNORE ? own : *status;
    const int code =
        PMPI_Recv(packed->data(), packed->bytes(), MPI_PACKED, source, tag, comm, &got);
    if (code == MPI_SUCCESS) packed->unpack(got);
    return code;
  });
}

int MPI_Sendrecv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                 void* recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,
                 MPI_Comm comm, MPI_Status* status) {
  auto *const sent = known_type(sendtype), *const received = known_type(recvtype);
  const auto packed = packed_instead(sent, sendtype, sendbuf, sendcount, dest);
  const auto to_unpack = packed_instead(received, recvtype, recvbuf, recvcount, source);
  if (!packed && !to_unpack)
    return by_mpi(Call::sendrecv, sent, sendtype, sendcount, [&] {
      return PMPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,
                           recvtype, source, recvtag, comm, status);
    });
  return noted(Call::sendrecv, Path::engine, sendtype, sendcount, [&] {
    MPI_Status own;
    auto& got = status == MPI_STATUS_IGNORE ? own : *status;
    if (packed) {
      packed->pack();
      sendbuf = packed->data(), sendcount = packed->bytes(), sendtype = MPI_PACKED;
    }
    if (to_unpack)
      recvbuf = to_unpack->data(), recvcount = to_unpack->bytes(), recvtype = MPI_PACKED;
    const int code = PMPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,
                                   recvtype, source, recvtag, comm, &got);
    if (code == MPI_SUCCESS && to_unpack) to_unpack->unpack(got);
    return code;
  });
}

int MPI_Isend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
              MPI_Request* request) {
  auto* const known = known_type(datatype);
  auto packed = packed_instead(known, datatype, buf, count, dest);
  if (!packed)
    return by_mpi(Call::isend, known, datatype, count,
                  [&] { return PMPI_Isend(buf, count, datatype, dest, tag, comm, request); });
  return noted(Call::isend, Path::engine, datatype, count, [&] {
    packed->pack();
    const int code =
        PMPI_Isend(packed->data(), packed->bytes(), MPI_PACKED, dest, tag, comm, request);
    if (code == MPI_SUCCESS) watch(*request, std::move(*packed), Way::send);
    return code;
  });
}

int MPI_Irecv(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
              MPI_Request* request) {
  auto* const known = known_type(datatype);
  auto packed = packed_instead(known, datatype, buf, count, source);
  if (!packed)
    return by_mpi(Call::irecv, known, datatype, count,
                  [&] { return PMPI_Irecv(buf, count, datatype, source, tag, comm, request); });
  return noted(Call::irecv, Path::engine, datatype, count, [&] {
    const int code =
        PMPI_Irecv(packed->data(), packed->bytes(), MPI_PACKED, source, tag, comm, request);
    if (code == MPI_SUCCESS) watch(*request, std::move(*packed), Way::receive);
    return code;
  });
}

int MPI_Send_init(const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
                  MPI_Comm comm, MPI_Request* request) {
  auto* const known = known_type(datatype);
  auto packed = packed_instead(known, datatype, buf, count, dest);
  if (!packed)
    return by_mpi(Call::send_init, known, datatype, count,
                  [&] { return PMPI_Send_init(buf, count, datatype, dest, tag, comm, request); });
  return noted(Call::send_init, Path::engine, datatype, count, [&] {
    const int code =
        PMPI_Send_init(packed->data(), packed->bytes(), MPI_PACKED, dest, tag, comm, request);
    if (code == MPI_SUCCESS) watch_persistent(*request, std::move(*packed), Way::send);
    return code;
  });
}

int MPI_Recv_init(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                  MPI_Request* request) {
  auto* const known = known_type(datatype);
  auto packed = packed_instead(known, datatype, buf, count, source);
  if (!packed)
    return by_mpi(Call::recv_init, known, datatype, count,
                  [&] { return PMPI_Recv_init(buf, count, datatype, source, tag, comm, request); });
  return noted(Call::recv_init, Path::engine, datatype, count, [&] {
    const int code =
        PMPI_Recv_init(packed->data(), packed->bytes(), MPI_PACKED, source, tag, comm, request);
    if (code == MPI_SUCCESS) watch_persistent(*request, std::move(*packed), Way::receive);
    return code;
  });
}
