// SPDX-License-Identifier: BSD-3-Clause
// Defines calls after which a program may know that a message has arrived whose request it freed.
// They unpack such a message before they return.
#include <mpi.h>

#include "comm/interpose/requests.hpp"

using halocline::interpose::DeliveryAfterCall;

// Defines one call. `parameters` are as in mpi.h; `arguments` are their names.
#define HALOCLINE_DELIVERS(call, parameters, arguments) \
  int MPI_##call parameters {                           \
    const DeliveryAfterCall after;                      \
    return PMPI_##call arguments;                       \
  }

HALOCLINE_DELIVERS(Barrier, (MPI_Comm comm), (comm))
HALOCLINE_DELIVERS(Bcast, (void* b, int n, MPI_Datatype t, int root, MPI_Comm comm),
                   (b, n, t, root, comm))
HALOCLINE_DELIVERS(Allreduce,
                   (const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm comm),
                   (s, r, n, t, op, comm))
HALOCLINE_DELIVERS(Reduce,
                   (const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, int root,
                    MPI_Comm comm),
                   (s, r, n, t, op, root, comm))
HALOCLINE_DELIVERS(Reduce_scatter,
                   (const void* s, void* r, const int n[], MPI_Datatype t, MPI_Op op,
                    MPI_Comm comm),
                   (s, r, n, t, op, comm))
HALOCLINE_DELIVERS(Reduce_scatter_block,
                   (const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm comm),
                   (s, r, n, t, op, comm))
HALOCLINE_DELIVERS(Scan, (const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm comm),
                   (s, r, n, t, op, comm))
HALOCLINE_DELIVERS(Exscan,
                   (const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm comm),
                   (s, r, n, t, op, comm))
HALOCLINE_DELIVERS(Gather,
                   (const void* s, int sn, MPI_Datatype st, void* r, int rn, MPI_Datatype rt,
                    int root, MPI_Comm comm),
                   (s, sn, st, r, rn, rt, root, comm))
HALOCLINE_DELIVERS(Gatherv,
                   (const void* s, int sn, MPI_Datatype st, void* r, const int rn[], const int at[],
                    MPI_Datatype rt, int root, MPI_Comm comm),
                   (s, sn, st, r, rn, at, rt, root, comm))
HALOCLINE_DELIVERS(Scatter,
                   (const void* s, int sn, MPI_Datatype st, void* r, int rn, MPI_Datatype rt,
                    int root, MPI_Comm comm),
                   (s, sn, st, r, rn, rt, root, comm))
HALOCLINE_DELIVERS(Scatterv,
                   (const void* s, const int sn[], const int at[], MPI_Datatype st, void* r, int rn,
                    MPI_Datatype rt, int root, MPI_Comm comm),
                   (s, sn, at, st, r, rn, rt, root, comm))
HALOCLINE_DELIVERS(Allgather,
                   (const void* s, int sn, MPI_Datatype st, void* r, int rn, MPI_Datatype rt,
                    MPI_Comm comm),
                   (s, sn, st, r, rn, rt, comm))
HALOCLINE_DELIVERS(Allgatherv,
                   (const void* s, int sn, MPI_Datatype st, void* r, const int rn[], const int at[],
                    MPI_Datatype rt, MPI_Comm comm),
                   (s, sn, st, r, rn, at, rt, comm))
HALOCLINE_DELIVERS(Alltoall,
                   (const void* s, int sn, MPI_Datatype st, void* r, int rn, MPI_Datatype rt,
                    MPI_Comm comm),
                   (s, sn, st, r, rn, rt, comm))
HALOCLINE_DELIVERS(Ssend, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm comm),
                   (b, n, t, to, tag, comm))
HALOCLINE_DELIVERS(Bsend, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm comm),
                   (b, n, t, to, tag, comm))
HALOCLINE_DELIVERS(Rsend, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm comm),
                   (b, n, t, to, tag, comm))
HALOCLINE_DELIVERS(Sendrecv_replace,
                   (void* b, int n, MPI_Datatype t, int to, int stag, int from, int rtag,
                    MPI_Comm comm, MPI_Status* status),
                   (b, n, t, to, stag, from, rtag, comm, status))
HALOCLINE_DELIVERS(Probe, (int from, int tag, MPI_Comm comm, MPI_Status* status),
                   (from, tag, comm, status))
HALOCLINE_DELIVERS(Iprobe, (int from, int tag, MPI_Comm comm, int* flag, MPI_Status* status),
                   (from, tag, comm, flag, status))
HALOCLINE_DELIVERS(Mprobe,
                   (int from, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status),
                   (from, tag, comm, message, status))
HALOCLINE_DELIVERS(Improbe,
                   (int from, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                    MPI_Status* status),
                   (from, tag, comm, flag, message, status))
HALOCLINE_DELIVERS(Mrecv,
                   (void* b, int n, MPI_Datatype t, MPI_Message* message, MPI_Status* status),
                   (b, n, t, message, status))
HALOCLINE_DELIVERS(Win_fence, (int assertion, MPI_Win window), (assertion, window))
HALOCLINE_DELIVERS(Win_wait, (MPI_Win window), (window))
HALOCLINE_DELIVERS(Win_lock, (int kind, int rank, int assertion, MPI_Win window),
                   (kind, rank, assertion, window))
HALOCLINE_DELIVERS(Win_unlock, (int rank, MPI_Win window), (rank, window))
HALOCLINE_DELIVERS(Win_lock_all, (int assertion, MPI_Win window), (assertion, window))
HALOCLINE_DELIVERS(Win_unlock_all, (MPI_Win window), (window))
HALOCLINE_DELIVERS(Win_flush, (int rank, MPI_Win window), (rank, window))
HALOCLINE_DELIVERS(Win_flush_all, (MPI_Win window), (window))
HALOCLINE_DELIVERS(Win_complete, (MPI_Win window), (window))
HALOCLINE_DELIVERS(Win_test, (MPI_Win window, int* flag), (window, flag))
HALOCLINE_DELIVERS(Neighbor_allgather,
                   (const void* s, int sn, MPI_Datatype st, void* r, int rn, MPI_Datatype rt,
                    MPI_Comm comm),
                   (s, sn, st, r, rn, rt, comm))
HALOCLINE_DELIVERS(Neighbor_allgatherv,
                   (const void* s, int sn, MPI_Datatype st, void* r, const int rn[], const int at[],
                    MPI_Datatype rt, MPI_Comm comm),
                   (s, sn, st, r, rn, at, rt, comm))
HALOCLINE_DELIVERS(Neighbor_alltoall,
                   (const void* s, int sn, MPI_Datatype st, void* r, int rn, MPI_Datatype rt,
                    MPI_Comm comm),
                   (s, sn, st, r, rn, rt, comm))
HALOCLINE_DELIVERS(Neighbor_alltoallv,
                   (const void* s, const int sn[], const int sat[], MPI_Datatype st, void* r,
                    const int rn[], const int rat[], MPI_Datatype rt, MPI_Comm comm),
                   (s, sn, sat, st, r, rn, rat, rt, comm))
HALOCLINE_DELIVERS(Comm_dup, (MPI_Comm comm, MPI_Comm* made), (comm, made))
HALOCLINE_DELIVERS(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* made),
                   (comm, color, key, made))

#undef HALOCLINE_DELIVERS
