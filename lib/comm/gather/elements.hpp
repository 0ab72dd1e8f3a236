// SPDX-License-Identifier: BSD-3-Clause
// Declares collectives that count basic elements, as single calls [TR14 section 6].
//
// Best peer: no MPI has this interface. A user multiplies each count of instances by
// basic_element_count(). The rest of the call stays.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "comm/gather/gather_plan.hpp"

namespace halocline::comm {

/// Returns the number of basic elements of one instance, the factor for a count of MPI. Throws
/// ConfigError for a type that Halocline does not know. Local. O(constructor arguments).
std::int64_t basic_element_count(MPI_Datatype type);

/// Gathers like MPI_Gather, through one rank of each node of `comm`, for any root and any order of
/// the ranks. Counts are numbers of instances, as in MPI. Collective, blocking. Makes a GatherPlan,
/// with its errors and cost; keep a GatherPlan to gather often.
void hierarchical_gather(const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype,
                         void* recvbuf, std::int64_t recvcount, MPI_Datatype recvtype, int root,
                         MPI_Comm comm, GatherVariant variant = GatherVariant::zero_copy,
                         const GatherOptions& options = {});

/// Collectives that count basic elements of "a large enough, contiguous sequence" of each type. A
/// rank's block may begin and end inside of an instance (errata C.2). All are collective and
/// blocking. Each makes a plan, with its errors and cost.
namespace elements {

/// Gathers blocks of equal numbers of elements at the root. recv_elements, recvbuf and recvtype
/// count at the root alone. sendbuf may be MPI_IN_PLACE at the root.
void gather(const void* sendbuf, std::int64_t send_elements, MPI_Datatype sendtype, void* recvbuf,
            std::int64_t recv_elements, MPI_Datatype recvtype, int root, MPI_Comm comm);
/// Gathers recv_elements[i] elements from rank i at the root, one block behind the other. "A
/// separate displacements array is not needed", since gaps belong to the receive type. sendbuf may
/// be MPI_IN_PLACE at the root.
void gatherv(const void* sendbuf, std::int64_t send_elements, MPI_Datatype sendtype, void* recvbuf,
             const std::vector<std::int64_t>& recv_elements, MPI_Datatype recvtype, int root,
             MPI_Comm comm);
/// Scatters blocks of equal numbers of elements from the root. send_elements, sendbuf and sendtype
/// count at the root alone. recvbuf may be MPI_IN_PLACE at the root.
void scatter(const void* sendbuf, std::int64_t send_elements, MPI_Datatype sendtype, void* recvbuf,
             std::int64_t recv_elements, MPI_Datatype recvtype, int root, MPI_Comm comm);
/// Scatters send_elements[i] elements from the root to rank i. Root and MPI_IN_PLACE as in
/// MPI_Scatterv.
void scatterv(const void* sendbuf, const std::vector<std::int64_t>& send_elements,
              MPI_Datatype sendtype, void* recvbuf, std::int64_t recv_elements,
              MPI_Datatype recvtype, int root, MPI_Comm comm);
/// Gathers blocks of equal numbers of elements on all ranks. sendbuf may be MPI_IN_PLACE, then on
/// all ranks.
void allgather(const void* sendbuf, std::int64_t send_elements, MPI_Datatype sendtype,
               void* recvbuf, std::int64_t recv_elements, MPI_Datatype recvtype, MPI_Comm comm);
/// Gathers recv_elements[i] elements from each rank i on all ranks. sendbuf may be MPI_IN_PLACE,
/// then on all ranks.
void allgatherv(const void* sendbuf, std::int64_t send_elements, MPI_Datatype sendtype,
                void* recvbuf, const std::vector<std::int64_t>& recv_elements,
                MPI_Datatype recvtype, MPI_Comm comm);
/// Exchanges send_elements[i] and recv_elements[i] elements with each rank i, in place of
/// MPI_Alltoallw.
void alltoallv(const void* sendbuf, const std::vector<std::int64_t>& send_elements,
               MPI_Datatype sendtype, void* recvbuf, const std::vector<std::int64_t>& recv_elements,
               MPI_Datatype recvtype, MPI_Comm comm);

}  // namespace elements

}  // namespace halocline::comm
