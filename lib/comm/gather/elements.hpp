// SPDX-License-Identifier: BSD-3-Clause
// Collectives that count basic elements, as single calls: [TR14 section 6].
//
// Best peer: none has this interface. Where counts of MPI's are whole instances of types, they are
// multiplied by basic_element_count(); everything else stays as it is in the call.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "comm/gather/gather_plan.hpp"

namespace halocline::comm {

/// Basic elements of one instance: what to multiply a count of MPI's with. Throws ConfigError for a
/// type that Halocline does not know. Local; O(constructor arguments).
std::int64_t basic_element_count(MPI_Datatype type);

/// MPI_Gather, through one rank of each node of `comm`, for any root and any order of the ranks;
/// counts are of instances, as in MPI. Collective, blocking. It makes a GatherPlan, which who calls
/// again keeps. Errors and cost as there.
void hierarchical_gather(const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype,
                         void* recvbuf, std::int64_t recvcount, MPI_Datatype recvtype, int root,
                         MPI_Comm comm, GatherVariant variant = GatherVariant::zero_copy,
                         const GatherOptions& options = {});

/// The same in basic elements of "a large enough, contiguous sequence" of each type: a rank's block
/// may begin and end inside of an instance (errata C.2). All are collective and blocking; errors
/// and cost as of the plan that each makes.
namespace elements {

/// recv_elements, recvbuf and recvtype count at the root alone. sendbuf may be MPI_IN_PLACE there.
void gather(const void* sendbuf, std::int64_t send_elements, MPI_Datatype sendtype, void* recvbuf,
            std::int64_t recv_elements, MPI_Datatype recvtype, int root, MPI_Comm comm);
/// recv_elements[i] from rank i, one behind the other: "a separate displacements array is not
/// needed", as gaps are the receive type's.
void gatherv(const void* sendbuf, std::int64_t send_elements, MPI_Datatype sendtype, void* recvbuf,
             const std::vector<std::int64_t>& recv_elements, MPI_Datatype recvtype, int root,
             MPI_Comm comm);
/// send_elements, sendbuf and sendtype count at the root alone. recvbuf may be MPI_IN_PLACE there.
void scatter(const void* sendbuf, std::int64_t send_elements, MPI_Datatype sendtype, void* recvbuf,
             std::int64_t recv_elements, MPI_Datatype recvtype, int root, MPI_Comm comm);
void scatterv(const void* sendbuf, const std::vector<std::int64_t>& send_elements,
              MPI_Datatype sendtype, void* recvbuf, std::int64_t recv_elements,
              MPI_Datatype recvtype, int root, MPI_Comm comm);
/// sendbuf may be MPI_IN_PLACE on all ranks.
void allgather(const void* sendbuf, std::int64_t send_elements, MPI_Datatype sendtype,
               void* recvbuf, std::int64_t recv_elements, MPI_Datatype recvtype, MPI_Comm comm);
void allgatherv(const void* sendbuf, std::int64_t send_elements, MPI_Datatype sendtype,
                void* recvbuf, const std::vector<std::int64_t>& recv_elements,
                MPI_Datatype recvtype, MPI_Comm comm);
/// In MPI_Alltoallw's place.
void alltoallv(const void* sendbuf, const std::vector<std::int64_t>& send_elements,
               MPI_Datatype sendtype, void* recvbuf, const std::vector<std::int64_t>& recv_elements,
               MPI_Datatype recvtype, MPI_Comm comm);

}  // namespace elements

}  // namespace halocline::comm
