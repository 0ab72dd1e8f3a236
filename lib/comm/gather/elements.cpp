// SPDX-License-Identifier: BSD-3-Clause
#include "comm/gather/elements.hpp"

#include "comm/gather/allgather_plan.hpp"
#include "comm/gather/alltoall_plan.hpp"
#include "support/narrow.hpp"

namespace halocline::comm {

namespace {

// MPI says const and RootedBuffers does not. Such buffers are only sent.
void* sent(const void* buffer) {
  return const_cast<void*>(buffer);  // NOLINT(*-const-cast)
}

}  // namespace

std::int64_t basic_element_count(MPI_Datatype type) {
  return dtype::basic_element_count(*first_elements(nullptr, type, 0).type);
}

void hierarchical_gather(const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype,
                         void* recvbuf, std::int64_t recvcount, MPI_Datatype recvtype, int root,
                         MPI_Comm comm, GatherVariant variant, const GatherOptions& options) {
  const auto communicators = NodeCommunicators::of(comm);
  RootedBuffers buffers{sent(sendbuf), 0, sendtype, recvbuf, {0}, recvtype, root, true};
  collectively(communicators->all().get(), [&] {
    if (sendbuf != MPI_IN_PLACE)
      buffers.elements = checked_multiply(sendcount, basic_element_count(sendtype));
    if (communicators->all().rank() == root)
      buffers.root_elements = {checked_multiply(recvcount, basic_element_count(recvtype))};
  });
  GatherPlan(communicators, buffers, variant, options).run();
}

namespace elements {

void gather(const void* sendbuf, std::int64_t send_elements, MPI_Datatype sendtype, void* recvbuf,
            std::int64_t recv_elements, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  gatherv(sendbuf, send_elements, sendtype, recvbuf, {recv_elements}, recvtype, root, comm);
}

void gatherv(const void* sendbuf, std::int64_t send_elements, MPI_Datatype sendtype, void* recvbuf,
             const std::vector<std::int64_t>& recv_elements, MPI_Datatype recvtype, int root,
             MPI_Comm comm) {
  GatherPlan(NodeCommunicators::of(comm),
             {sent(sendbuf), send_elements, sendtype, recvbuf, recv_elements, recvtype, root},
             GatherVariant::zero_copy)
      .run();
}

void scatter(const void* sendbuf, std::int64_t send_elements, MPI_Datatype sendtype, void* recvbuf,
             std::int64_t recv_elements, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  scatterv(sendbuf, {send_elements}, sendtype, recvbuf, recv_elements, recvtype, root, comm);
}

void scatterv(const void* sendbuf, const std::vector<std::int64_t>& send_elements,
              MPI_Datatype sendtype, void* recvbuf, std::int64_t recv_elements,
              MPI_Datatype recvtype, int root, MPI_Comm comm) {
  ScatterPlan(NodeCommunicators::of(comm),
              {recvbuf, recv_elements, recvtype, sent(sendbuf), send_elements, sendtype, root})
      .run();
}

void allgather(const void* sendbuf, std::int64_t send_elements, MPI_Datatype sendtype,
               void* recvbuf, std::int64_t recv_elements, MPI_Datatype recvtype, MPI_Comm comm) {
  allgatherv(sendbuf, send_elements, sendtype, recvbuf, {recv_elements}, recvtype, comm);
}

void allgatherv(const void* sendbuf, std::int64_t send_elements, MPI_Datatype sendtype,
                void* recvbuf, const std::vector<std::int64_t>& recv_elements,
                MPI_Datatype recvtype, MPI_Comm comm) {
  AllgatherPlan(NodeCommunicators::of(comm),
                {sendbuf, send_elements, sendtype, recvbuf, recv_elements, recvtype})
      .run();
}

void alltoallv(const void* sendbuf, const std::vector<std::int64_t>& send_elements,
               MPI_Datatype sendtype, void* recvbuf, const std::vector<std::int64_t>& recv_elements,
               MPI_Datatype recvtype, MPI_Comm comm) {
  DirectAlltoallPlan(NodeCommunicators::of(comm),
                     {sendbuf, send_elements, sendtype, recvbuf, recv_elements, recvtype})
      .run();
}

}  // namespace elements

}  // namespace halocline::comm
