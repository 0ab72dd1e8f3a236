// SPDX-License-Identifier: BSD-3-Clause
// All-to-all exchanges by datatypes alone, set up once, run again and again: the uses that
// [TR14 section 5] has for its new constructors, and the one that it says makes MPI_Alltoallw
// unnecessary.
//
// Best peer: MPI libraries rotate and pack blocks in temporary buffers, round by round; here a
// block is never touched between two messages.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/gather/collective_plan.hpp"
#include "comm/gather/node_communicators.hpp"
#include "comm/gather/schedule.hpp"

namespace halocline::comm {

/// What a rank sends to and receives from every rank, in basic elements of endless repetitions of
/// types: the block of rank i are the elements[i] behind those of the ranks before it. One number:
/// of every rank. The buffers do not overlap; there is no MPI_IN_PLACE.
struct AlltoallBuffers {
  const void* sendbuf;
  std::vector<std::int64_t> send_elements;
  MPI_Datatype sendtype;
  void* recvbuf;
  std::vector<std::int64_t> recv_elements;
  MPI_Datatype recvtype;
  /// The same on all ranks: messages of more elements are divided, and what has arrived of them
  /// moves on.
  std::int64_t most_elements = Schedule::kMostElements;
};

/// All plans: constructors are collective, and throw ConfigError on all ranks for numbers that are
/// negative or do not match, and for types that Halocline does not know. What they cost is given in
/// blocks; the types are cut for each message, see dtype::element_ranges().
class AlltoallPlan : public CollectivePlan {
 protected:
  AlltoallPlan(std::shared_ptr<NodeCommunicators> communicators, const AlltoallBuffers& buffers);
  ~AlltoallPlan() = default;

  int rank() const { return nodes().rank(); }
  int ranks() const { return nodes().ranks(); }
  /// To a rank, modulo their number.
  Link link(std::int64_t rank) const;
  /// The signature that every block of every rank has. Throws ConfigError on all ranks if they have
  /// several. Collective.
  Contributions one_block() const;

  /// That of this rank to itself.
  void copy_own();

  ElementBlocks sends_, receives_;  // by rank
};

/// MPI_Alltoallv counted in elements: with types whose repetition places every block it does what
/// MPI_Alltoallw does with arrays of types [TR14 section 6]. A message for each other rank.
/// O(ranks).
class DirectAlltoallPlan final : public AlltoallPlan {
 public:
  DirectAlltoallPlan(std::shared_ptr<NodeCommunicators> communicators,
                     const AlltoallBuffers& buffers);
};

/// MPI_Alltoall in ceil(log2 ranks) rounds (Bruck et al., as cited by [TR14]): block i, for the
/// rank i further on, moves on by 2^k in round k if bit k of i is set. It first leaves from the
/// send buffer, where such blocks are a circular vector; waits for further rounds in slot i of
/// those of round k, of signature types, where they are bounded vectors; and arrives in the receive
/// buffer [TR14 section 5; errata C.6]. Numbers must be equal, blocks whole instances of their
/// types, and of one signature. O(ranks log ranks) blocks and slots.
class BruckAlltoallPlan final : public AlltoallPlan {
 public:
  BruckAlltoallPlan(std::shared_ptr<NodeCommunicators> communicators,
                    const AlltoallBuffers& buffers);
};

/// Likewise for blocks of different sizes that are not very different ("not-quite-regular"): slots
/// are as large as the largest block anywhere and are the buckets of bucket types. All elements
/// everywhere must be of one basic type. Sizes travel ahead, by the same rounds, at plan time.
/// Blocks and slots likewise.
class BucketAlltoallPlan final : public AlltoallPlan {
 public:
  BucketAlltoallPlan(std::shared_ptr<NodeCommunicators> communicators,
                     const AlltoallBuffers& buffers);
};

/// MPI_Alltoall through the first rank of each node, which alone talks to other nodes, once to
/// each: it receives what its node's ranks send as stretched vectors, so that what goes to one node
/// lies together, and nodes may be of any sizes [TR14 section 5; errata C.6]. Ranks of a node
/// exchange their own blocks without it. Numbers must be equal, and blocks of one signature.
/// O(ranks), for the first rank of a node as often as this has ranks.
class HierarchicalAlltoallPlan final : public AlltoallPlan {
 public:
  HierarchicalAlltoallPlan(std::shared_ptr<NodeCommunicators> communicators,
                           const AlltoallBuffers& buffers);

 private:
  void follow(const std::vector<int>& here);
  void lead(const std::vector<int>& followers, const Contributions& block);
};

}  // namespace halocline::comm
